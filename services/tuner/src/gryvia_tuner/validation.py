"""What only the service can judge of a spec: the space and the rungs it means, and everything that makes it impossible to run.

Each problem names the field, the value and the fix, because the object goes to Failed with exactly these words. What is
possible but has no effect is not refused; it is named in the condition FieldsIgnored.
"""

from __future__ import annotations

from collections.abc import Iterator

from gryvia_common.kinds.autotuner import AshaConfig, GryviaAutoTunerSpec, Parameter
from gryvia_common.numbers import parse_decimal
from gryvia_search import parameters
from gryvia_search.rungs import Rungs
from gryvia_search.space import Space
from gryvia_tuner.settings import TunerSettings

GRID_LIMIT = 100_000
DEFAULT_FACTOR = 3
SHOWN_PROBLEMS = 5


def check(spec: GryviaAutoTunerSpec, settings: TunerSettings) -> tuple[Space | None, str]:
    """The space to search, or every problem."""
    wanted = [_plain(parameter) for parameter in spec.parameter_space]
    found = parameters.problems(wanted, parse_decimal)
    problems = [*_study_problems(spec, settings), *(f"spec.parameterSpace{path}: {text}" for path, text in found)]
    if not problems:
        space = Space(tuple(parameter.dimension() for parameter in wanted))
        if spec.search_algorithm != "grid" or space.grid_size <= GRID_LIMIT:
            return space, ""
        problems = [
            f"spec.parameterSpace: a grid of {space.grid_size} points is too large, the limit is {GRID_LIMIT};"
            " use fewer values or larger steps, or searchAlgorithm random or bayesian"
        ]
    more = len(problems) - SHOWN_PROBLEMS
    return None, "; ".join(problems[:SHOWN_PROBLEMS] + ([f"and {more} more"] if more > 0 else []))


def rungs_of(config: AshaConfig) -> Rungs:
    factor = config.reduction_factor if config.reduction_factor > 1 else DEFAULT_FACTOR
    return Rungs(max(config.min_resource, 1), factor, config.max_epochs)


def ignored(spec: GryviaAutoTunerSpec) -> list[str]:
    """The fields that have no effect in this combination, each with the reason."""
    found = [f"parameter {one.name}: {why}" for one in spec.parameter_space for why in _plain(one).without_effect()]
    if spec.asha_config is not None and spec.search_algorithm != "asha":
        found.append(f"ashaConfig: searchAlgorithm is {spec.search_algorithm}, not asha")
    if spec.max_gpu_hours is not None and spec.job_template.gpus == 0:
        found.append("maxGpuHours: the trials use no GPU (jobTemplate.gpus is 0)")
    if spec.parallelism < 1:
        found.append(f"parallelism: {spec.parallelism} acts as 1")
    own = {"TRIAL_NAME", "TUNER_NAME", *(f"HP_{parameter.name}" for parameter in spec.parameter_space)}
    names = [variable.name for variable in spec.job_template.env or () if variable.name in own]
    return [*found, *(f"jobTemplate.env {name}: the tuner sets it" for name in names)]


def _study_problems(spec: GryviaAutoTunerSpec, settings: TunerSettings) -> Iterator[str]:
    if not 1 <= spec.max_trials <= settings.tuner_max_trials:
        yield (
            f"spec.maxTrials: {spec.max_trials} must be 1 to {settings.tuner_max_trials};"
            " the upper limit is the service's setting --tuner-max-trials"
        )
    if spec.objective.direction not in ("minimize", "maximize"):
        yield f'spec.objective.direction: "{spec.objective.direction}" must be minimize or maximize'
    if not spec.objective.metric_name.strip():
        yield "spec.objective.metricName: empty; name the metric that the trials report"
    if spec.early_stopping_rounds < 0:
        yield f"spec.earlyStoppingRounds: {spec.early_stopping_rounds} must be 0 (off) or more"
    if spec.search_algorithm == "asha" and spec.asha_config is None:
        yield "spec.ashaConfig: missing; searchAlgorithm asha needs at least maxEpochs, the epochs of a full trial"
    elif spec.search_algorithm == "asha" and spec.asha_config and not (rungs := rungs_of(spec.asha_config)).levels:
        yield f"spec.ashaConfig.maxEpochs: {rungs.last} must be at least minResource ({rungs.first})"
    template = spec.job_template
    if not (template.image or "").strip():
        yield "spec.jobTemplate.image: missing; set the container image of the trials"
    kind = template.workload_kind or ("statefulset" if template.type == "inference" else "job")
    if kind == "statefulset":
        yield (
            "spec.jobTemplate.workloadKind: a statefulset (the default for type inference) never completes,"
            " so the trial would have no result; set workloadKind job"
        )


def _plain(one: Parameter) -> parameters.Parameter:
    return parameters.Parameter(one.name, one.type, one.min, one.max, one.scale, one.step, tuple(one.values or ()))
