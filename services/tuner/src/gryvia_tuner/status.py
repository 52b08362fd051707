"""The status of a tuner: counts, the window of trials, the best one, conditions, and the message for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Literal

from pydantic import ValidationError

from gryvia_common.kinds.autotuner import GryviaAutoTunerStatus, TunerPhase
from gryvia_common.kinds.conditions import ConditionStatus, drop_condition, set_condition, timestamp
from gryvia_common.kinds.model import Condition
from gryvia_common.kinds.trials import TrialRecord, to_trial
from gryvia_common.kube.objects import Json, is_deleting, metadata
from gryvia_common.runtime.plan import Plan
from gryvia_tuner.budgets import gpu_hours, gpus_of
from gryvia_tuner.trials import Tuner
from gryvia_tuner.warmstart import Warm

Conditions = Sequence[Condition] | None


def unreadable(raw: Json, message: str, now: datetime) -> Plan:
    """For a spec that does not parse: Failed when nothing was launched yet; a running study waits for a spec that does."""
    try:
        before = GryviaAutoTunerStatus.model_validate(raw.get("status") or {})
    except ValidationError:
        before = GryviaAutoTunerStatus()
    launched = bool(before.trials_launched)
    if is_deleting(raw) or (launched and before.phase in ("Succeeded", "Failed")):
        return Plan()
    generation = int(metadata(raw).get("generation") or 1)
    found = set_condition(before.conditions, "SpecValid", "False", "Invalid", message, now=now, generation=generation)
    changes = {
        "phase": before.phase if launched else "Failed",
        "message": message,
        "conditions": found,
        "observed_generation": generation,
        "completion_time": before.completion_time if launched else before.completion_time or timestamp(now),
    }
    return Plan(status=before.model_copy(update=changes))


def status_of(
    tuner: Tuner,
    records: Collection[TrialRecord],
    window: Sequence[TrialRecord],
    best: TrialRecord | None,
    *,
    phase: TunerPhase,
    message: str,
    archived: int,
    warm: Warm,
    notes: Sequence[str],
    invalid: str = "",
    now: datetime,
) -> GryviaAutoTunerStatus:
    """The whole status. `notes`: the fields without effect; `invalid`: what is wrong with the spec."""
    counts = Counter(record.phase for record in records)
    ended = phase in ("Succeeded", "Failed")
    return GryviaAutoTunerStatus(
        phase=phase,
        message=message or None,
        observed_generation=tuner.generation,
        conditions=_conditions(tuner, best, ended, warm, notes, invalid, now),
        trials=[to_trial(tuner.name, record) for record in window],
        best_trial=to_trial(tuner.name, best) if best else None,
        trials_completed=counts["Succeeded"] + counts["Stopped"],
        trials_running=counts["Pending"] + counts["Running"],
        trials_failed=counts["Failed"],
        trials_stopped=counts["Stopped"],
        trials_launched=len(records),
        archived_trials=archived or None,
        warm_start_trials=len(warm.records) if tuner.spec.warm_start_from else None,
        gpu_hours=round(gpu_hours(tuner.spec, records, None), 4) if gpus_of(tuner.spec) else None,
        start_time=tuner.status.start_time or (None if invalid else timestamp(now)),
        completion_time=timestamp(now) if ended else None,
    )


def _conditions(
    tuner: Tuner, best: TrialRecord | None, ended: bool, warm: Warm, notes: Sequence[str], invalid: str, now: datetime
) -> list[Condition]:
    found: Conditions = tuner.status.conditions

    def put(type: str, status: ConditionStatus, reason: str, message: str) -> list[Condition]:
        return set_condition(found, type, status, reason, message, now=now, generation=tuner.generation)

    found = put("SpecValid", "False", "Invalid", invalid) if invalid else drop_condition(found, "SpecValid")
    active: tuple[ConditionStatus, Literal["Done", "TrialsActive"]] = (
        ("False", "Done") if ended else ("True", "TrialsActive")
    )
    found = put("TrialsRunning", *active, "The study has ended." if ended else "Trials are run as slots are free.")
    if best is not None and best.value is not None:
        metric = tuner.spec.objective.metric_name
        trial = to_trial(tuner.name, best)
        found = put("BestTrialFound", "True", "MetricReported", f"{trial.name}: {metric} {best.value:g}")
    if tuner.spec.warm_start_from:
        said = "; ".join([f"{len(warm.records)} finished trials are reused", *warm.notes])
        if warm.records:
            found = put("WarmStarted", "True", "TrialsReused", said)
        else:
            found = put("WarmStarted", "False", "NothingToReuse", said)
    if notes:
        return put("FieldsIgnored", "True", "WithoutEffect", "; ".join(notes))
    return drop_condition(found, "FieldsIgnored")
