"""What only the service can judge of a spec: the search space it means, and everything that makes it impossible to run.

Each problem names the field, the value and the fix, because the object goes to Failed with exactly these words. What is
possible but has no effect is not refused; it is named in the condition FieldsIgnored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from gryvia_common.errors import Terminal
from gryvia_common.kinds.aijob import JobTemplate
from gryvia_common.kinds.autotuner import GryviaAutoTunerSpec, Parameter
from gryvia_common.numbers import parse_decimal
from gryvia_search.dimensions import Choices, Continuous, Dimension, Integers
from gryvia_search.space import Space
from gryvia_tuner.rungs import rungs_of
from gryvia_tuner.settings import TunerSettings

GRID_LIMIT = 100_000
SHOWN_PROBLEMS = 5
LARGEST_INT = 1e15
LARGEST_FLOAT = 1e100
"""Beyond these the models' arithmetic is no longer exact, or not finite."""
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def check(spec: GryviaAutoTunerSpec, settings: TunerSettings) -> Space:
    """The space to search. Raises Terminal with every problem."""
    problems = [*_study_problems(spec, settings), *_space_problems(spec)]
    if not problems:
        space = space_of(spec)
        if spec.search_algorithm != "grid" or space.grid_size <= GRID_LIMIT:
            return space
        problems = [
            f"spec.parameterSpace: a grid of {space.grid_size} points is too large, the limit is {GRID_LIMIT};"
            " use fewer values or larger steps, or searchAlgorithm random or bayesian"
        ]
    more = len(problems) - SHOWN_PROBLEMS
    raise Terminal("; ".join(problems[:SHOWN_PROBLEMS] + ([f"and {more} more"] if more > 0 else [])), reason="Invalid")


def space_of(spec: GryviaAutoTunerSpec) -> Space:
    """The space of a spec without problems."""
    return Space(tuple(dimension_of(parameter) for parameter in spec.parameter_space))


def ignored(spec: GryviaAutoTunerSpec) -> list[str]:
    """The fields that have no effect in this combination, each with the reason."""
    found = [note for parameter in spec.parameter_space for note in _ignored_of(parameter)]
    if spec.asha_config is not None and spec.search_algorithm != "asha":
        found.append(f"ashaConfig: searchAlgorithm is {spec.search_algorithm}, not asha")
    if spec.max_gpu_hours is not None and spec.job_template.gpus == 0:
        found.append("maxGpuHours: the trials use no GPU (jobTemplate.gpus is 0)")
    if spec.parallelism < 1:
        found.append(f"parallelism: {spec.parallelism} acts as 1")
    own = {"TRIAL_NAME", "TUNER_NAME", *(f"HP_{parameter.name}" for parameter in spec.parameter_space)}
    found.extend(
        f"jobTemplate.env {variable.name}: the tuner sets it"
        for variable in spec.job_template.env or ()
        if variable.name in own
    )
    return found


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
    if spec.search_algorithm == "asha":
        yield from _asha_problems(spec)
    yield from _template_problems(spec.job_template)


def _asha_problems(spec: GryviaAutoTunerSpec) -> Iterator[str]:
    if spec.asha_config is None:
        yield "spec.ashaConfig: missing; searchAlgorithm asha needs at least maxEpochs, the epochs of a full trial"
    elif not rungs_of(spec.asha_config):
        yield (
            f"spec.ashaConfig.maxEpochs: {spec.asha_config.max_epochs} must be at least"
            f" minResource ({max(spec.asha_config.min_resource, 1)})"
        )


def _template_problems(template: JobTemplate) -> Iterator[str]:
    if not (template.image or "").strip():
        yield "spec.jobTemplate.image: missing; set the container image of the trials"
    kind = template.workload_kind or ("statefulset" if template.type == "inference" else "job")
    if kind == "statefulset":
        yield (
            "spec.jobTemplate.workloadKind: a statefulset (the default for type inference) never completes,"
            " so the trial would have no result; set workloadKind job"
        )


def _space_problems(spec: GryviaAutoTunerSpec) -> Iterator[str]:
    if not spec.parameter_space:
        yield "spec.parameterSpace: empty; add at least one parameter"
    seen: set[str] = set()
    for index, parameter in enumerate(spec.parameter_space):
        path = f"spec.parameterSpace[{index}]"
        if not _NAME.fullmatch(parameter.name):
            yield f'{path}.name: "{parameter.name}" must be made of letters, digits, "_", "." and "-"'
        elif parameter.name in seen:
            yield f'{path}.name: "{parameter.name}" is there twice; give each parameter its own name'
        seen.add(parameter.name)
        yield from _value_problems(f"{path} ({parameter.name})", parameter)


def _value_problems(path: str, parameter: Parameter) -> Iterator[str]:
    if parameter.values:
        if parameter.type != "categorical":
            wrong = next((text for text in parameter.values if not _is_number(parameter.type, text)), None)
            if wrong is not None:
                yield f'{path}.values: "{wrong}" is not a plain {parameter.type}; write a decimal number or use categorical'
        return
    if parameter.type == "categorical":
        yield f"{path}.values: missing; a categorical parameter needs at least one value"
        return
    low, high = parameter.min, parameter.max
    if low is None or high is None:
        name = "min" if low is None else "max"
        yield f"{path}.{name}: missing; set min and max, or list the values"
        return
    if low >= high:
        yield f"{path}.min: {low:g} must be less than max ({high:g})"
        return
    limit = LARGEST_INT if parameter.type == "int" else LARGEST_FLOAT
    if max(abs(low), abs(high)) > limit:
        yield f"{path}: min {low:g} and max {high:g} must be within {limit:g}; search the exponent instead"
    if parameter.scale == "log" and low <= 0:
        yield f"{path}.min: {low:g} must be above 0 for scale log; raise it or use scale linear"
    if parameter.type == "int":
        if parameter.step < 1:
            yield f"{path}.step: {parameter.step} must be 1 or more"
        if math.ceil(low) > math.floor(high):
            yield f"{path}.min: there is no whole number between {low:g} and {high:g}; widen the bounds or use float"


def _is_number(type: str, text: str) -> bool:
    number = parse_decimal(text)
    return number is not None and (type != "int" or number.is_integer())


def dimension_of(parameter: Parameter) -> Dimension:
    if parameter.values:
        if parameter.type == "categorical":
            return Choices(parameter.name, tuple(dict.fromkeys(parameter.values)))
        by_number = {float(text): text for text in reversed(parameter.values)}
        return Choices(parameter.name, tuple(by_number[number] for number in sorted(by_number)), ordered=True)
    assert parameter.min is not None  # check() has seen to both
    assert parameter.max is not None
    log = parameter.scale == "log"
    if parameter.type == "float":
        return Continuous(parameter.name, parameter.min, parameter.max, log)
    low, step = math.ceil(parameter.min), parameter.step
    high = low + (math.floor(parameter.max) - low) // step * step
    return Integers(parameter.name, low, high, step, log and step == 1)


def _ignored_of(parameter: Parameter) -> Iterator[str]:
    name = f"parameter {parameter.name}"
    listed = bool(parameter.values)
    if listed and (parameter.min is not None or parameter.max is not None):
        yield f"{name}: min and max, because values are listed"
    if parameter.scale == "log" and (listed or parameter.type == "categorical"):
        yield f"{name}: scale, because values are listed"
    elif parameter.scale == "log" and parameter.type == "int" and parameter.step > 1:
        yield f"{name}: scale log, because step is {parameter.step}"
    if parameter.step != 1 and (listed or parameter.type != "int"):
        yield f"{name}: step, which is for an int between min and max"
