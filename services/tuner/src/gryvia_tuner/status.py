"""The status of a tuner: counts, the window of trials, the best one, conditions, and the message for people."""

from __future__ import annotations

from collections.abc import Iterator

from gryvia_common.kinds.autotuner import GryviaAutoTunerStatus, TunerPhase
from gryvia_common.kinds.conditions import Said, set_conditions, timestamp
from gryvia_common.kinds.gpus import gpus_of
from gryvia_common.kinds.trials import to_trial
from gryvia_tuner import archive, validation
from gryvia_tuner.budgets import gpu_hours
from gryvia_tuner.study import Study


def status_of(study: Study, phase: TunerPhase, message: str) -> GryviaAutoTunerStatus:
    """The whole status."""
    tuner, spec, now, counts = study.tuner, study.spec, study.now, study.counts
    ended = phase in ("Succeeded", "Failed")
    said = _conditions(study, ended)
    return GryviaAutoTunerStatus(
        phase=phase,
        message=message or None,
        observed_generation=tuner.generation,
        conditions=set_conditions(
            tuner.status.conditions, said, passing=("SpecValid", "FieldsIgnored"), now=now, generation=tuner.generation
        ),
        trials=[to_trial(tuner.name, record) for record in archive.window(study)],
        best_trial=to_trial(tuner.name, study.best) if study.best else None,
        trials_completed=counts["Succeeded"] + counts["Stopped"],
        trials_running=len(study.active),
        trials_failed=counts["Failed"],
        trials_stopped=counts["Stopped"],
        trials_launched=len(study.records),
        archived_trials=len(study.archived) or None,
        warm_start_trials=len(study.warm.records) if spec.warm_start_from else None,
        gpu_hours=round(gpu_hours(study, None), 4) if gpus_of(spec.job_template) else None,
        start_time=tuner.status.start_time or (None if study.invalid else timestamp(now)),
        completion_time=timestamp(now) if ended else None,
    )


def _conditions(study: Study, ended: bool) -> Iterator[Said]:
    best, warm, notes = study.best, study.warm, validation.ignored(study.spec)
    if study.invalid:
        yield "SpecValid", "False", "Invalid", study.invalid
    if ended:
        yield "TrialsRunning", "False", "Done", "The study has ended."
    else:
        yield "TrialsRunning", "True", "TrialsActive", "Trials are run as slots are free."
    if best is not None and best.value is not None:
        said = f"{study.name_of(best.number)}: {study.spec.objective.metric_name} {best.value:g}"
        yield "BestTrialFound", "True", "MetricReported", said
    if study.spec.warm_start_from:
        said = "; ".join([f"{len(warm.records)} finished trials are reused", *warm.notes])
        yield "WarmStarted", *(("True", "TrialsReused") if warm.records else ("False", "NothingToReuse")), said
    if notes:
        yield "FieldsIgnored", "True", "WithoutEffect", "; ".join(notes)
