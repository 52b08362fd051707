"""What happened between two passes: domain events for the platform, and Events for who runs `kubectl describe`.

Only transitions count, so a pass that is repeated after a crash says the same again (the ids are deterministic) and a settled
study says nothing. Describe shows failures and the study's own steps; one Event for each of 20,000 trials would be 20,000 writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gryvia_common.bus import events
from gryvia_common.kinds.autotuner import GryviaAutoTunerStatus
from gryvia_common.kinds.trials import TrialRecord
from gryvia_common.runtime.plan import Record
from gryvia_tuner.study import Study

_TRIAL_ENDS: Mapping[str, type[events.TrialEvent]] = {
    "Succeeded": events.TrialCompleted,
    "Failed": events.TrialFailed,
    "Stopped": events.TrialStopped,
}
_STUDY_ENDS: Mapping[str, type[events.TunerEvent]] = {"Succeeded": events.TunerCompleted, "Failed": events.TunerFailed}


def emitted(study: Study, status: GryviaAutoTunerStatus) -> Iterator[events.DomainEvent]:
    if _begins(study, status):
        yield _of_study(study, events.TunerStarted, status)
    for number, record in study.recent.items():
        if number not in study.before:
            yield _of_trial(study, events.TrialStarted, record)
        if _ends(study, record):
            yield _of_trial(study, _TRIAL_ENDS[record.phase], record)
    ends = _STUDY_ENDS.get(status.phase or "")
    if ends is not None:
        yield _of_study(study, ends, status)


def recorded(study: Study, status: GryviaAutoTunerStatus) -> Iterator[Record]:
    if _begins(study, status):
        yield Record("Started", f"{study.spec.search_algorithm} search, up to {study.spec.max_trials} trials")
    for phase in ("Failed", "Stopped"):
        some = [record for record in study.recent.values() if record.phase == phase and _ends(study, record)]
        if some:
            more = f" (and {len(some) - 1} more)" if len(some) > 1 else ""
            said = f"{study.name_of(some[0].number)}{more}: {some[0].message}"
            yield Record(f"Trial{phase}", said, "Warning" if phase == "Failed" else "Normal")
    if status.phase == "Succeeded":
        yield Record("Completed", status.message or "")
    elif status.phase == "Failed":
        yield Record("Failed", status.message or "", "Warning")


def _begins(study: Study, status: GryviaAutoTunerStatus) -> bool:
    return status.start_time is not None and study.tuner.status.start_time is None


def _ends(study: Study, record: TrialRecord) -> bool:
    before = study.before.get(record.number)
    return record.phase in _TRIAL_ENDS and (before is None or before.active)


def _of_trial(study: Study, event: type[events.TrialEvent], record: TrialRecord) -> events.TrialEvent:
    tuner, begins = study.tuner, event is events.TrialStarted
    value = record.rungs[-1][1] if event is events.TrialStopped and record.rungs else record.value
    return event(
        namespace=tuner.namespace,
        name=study.name_of(record.number),
        uid=tuner.uid,
        generation=tuner.generation,
        transition=study.name_of(record.number),
        tuner=tuner.name,
        number=record.number,
        parameters=dict(record.parameters),
        metric_name=tuner.spec.objective.metric_name,
        metric_value=None if begins else value,
        message="" if begins else record.message,
    )


def _of_study(study: Study, event: type[events.TunerEvent], status: GryviaAutoTunerStatus) -> events.TunerEvent:
    tuner, best = study.tuner, study.best
    return event(
        namespace=tuner.namespace,
        name=tuner.name,
        uid=tuner.uid,
        generation=tuner.generation,
        message=status.message or "",
        best_trial=study.name_of(best.number) if best else "",
        best_value=best.value if best else None,
        best_parameters=dict(best.parameters) if best else {},
        trials_completed=status.trials_completed or 0,
        trials_failed=status.trials_failed or 0,
    )
