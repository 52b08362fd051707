"""What happened between two passes: domain events for the platform, and Events for who runs `kubectl describe`.

Only transitions count, so a pass that is repeated after a crash says the same again (the ids are deterministic) and a settled
study says nothing. Describe shows failures and the study's own steps; one Event for each of 20,000 trials would be 20,000 writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gryvia_common.bus.events import (
    DomainEvent,
    TrialCompleted,
    TrialEvent,
    TrialFailed,
    TrialStarted,
    TrialStopped,
    TunerCompleted,
    TunerEvent,
    TunerFailed,
    TunerStarted,
)
from gryvia_common.kinds.autotuner import GryviaAutoTunerStatus
from gryvia_common.kinds.trials import TrialRecord, trial_name
from gryvia_common.runtime.plan import Record
from gryvia_tuner.trials import Tuner

_ENDS: Mapping[str, type[TrialEvent]] = {"Succeeded": TrialCompleted, "Failed": TrialFailed, "Stopped": TrialStopped}
Records = Mapping[int, TrialRecord]


def emitted(
    tuner: Tuner, before: Records, after: Records, best: TrialRecord | None, status: GryviaAutoTunerStatus
) -> tuple[DomainEvent, ...]:
    found: list[DomainEvent] = []
    begun = status.start_time is not None and tuner.status.start_time is None
    if begun:
        found.append(_of_tuner(tuner, TunerStarted, best, status))
    for number, record in after.items():
        if number not in before:
            found.append(_of_trial(tuner, TrialStarted, record))
        if record.phase in _ENDS and (number not in before or before[number].active):
            found.append(_of_trial(tuner, _ENDS[record.phase], record))
    if status.phase == "Succeeded":
        found.append(_of_tuner(tuner, TunerCompleted, best, status))
    elif status.phase == "Failed":
        found.append(_of_tuner(tuner, TunerFailed, best, status))
    return tuple(found)


def recorded(tuner: Tuner, before: Records, after: Records, status: GryviaAutoTunerStatus) -> tuple[Record, ...]:
    return tuple(_records(tuner, before, after, status))


def _records(tuner: Tuner, before: Records, after: Records, status: GryviaAutoTunerStatus) -> Iterator[Record]:
    ended = [r for n, r in after.items() if r.phase in _ENDS and (n not in before or before[n].active)]
    if status.start_time is not None and tuner.status.start_time is None:
        yield Record("Started", f"{tuner.spec.search_algorithm} search, up to {tuner.spec.max_trials} trials")
    for phase in ("Failed", "Stopped"):
        some = [record for record in ended if record.phase == phase]
        if some:
            more = f" (and {len(some) - 1} more)" if len(some) > 1 else ""
            name = trial_name(tuner.name, some[0].number)
            yield Record(
                f"Trial{phase}", f"{name}{more}: {some[0].message}", "Warning" if phase == "Failed" else "Normal"
            )
    if status.phase in ("Succeeded", "Failed"):
        yield Record(
            "Completed" if status.phase == "Succeeded" else "Failed",
            status.message or "",
            "Normal" if status.phase == "Succeeded" else "Warning",
        )


def _of_trial(tuner: Tuner, event: type[TrialEvent], record: TrialRecord) -> TrialEvent:
    name = trial_name(tuner.name, record.number)
    value = record.value
    if event is TrialStopped and record.rungs:
        value = record.rungs[-1][1]
    return event(
        namespace=tuner.namespace,
        name=name,
        uid=tuner.uid,
        generation=tuner.generation,
        transition=name,
        tuner=tuner.name,
        number=record.number,
        parameters=dict(record.parameters),
        metric_name=tuner.spec.objective.metric_name,
        metric_value=None if event is TrialStarted else value,
        message="" if event is TrialStarted else record.message,
    )


def _of_tuner(
    tuner: Tuner, event: type[TunerEvent], best: TrialRecord | None, status: GryviaAutoTunerStatus
) -> TunerEvent:
    return event(
        namespace=tuner.namespace,
        name=tuner.name,
        uid=tuner.uid,
        generation=tuner.generation,
        message=status.message or "",
        best_trial=trial_name(tuner.name, best.number) if best else "",
        best_value=best.value if best else None,
        best_parameters=dict(best.parameters) if best else {},
        trials_completed=status.trials_completed or 0,
        trials_failed=status.trials_failed or 0,
    )
