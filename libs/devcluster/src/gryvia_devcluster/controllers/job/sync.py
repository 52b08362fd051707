"""The Job controller: Indexed and NonIndexed completion, suspension, policies, deadline and time to live.

The status is written before the finalizers of counted pods are taken off and before pods are made, and the shell stops
at the first refusal; so a count can neither be lost nor doubled. `backoff_base` is the real controller's ten seconds by
default; `gryvia up` shortens it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime, timedelta

from gryvia_devcluster.clock import parse, stamp
from gryvia_devcluster.controllers.actions import Action, Again, Emit, Remove, Replace
from gryvia_devcluster.controllers.job.indexes import format_indexes
from gryvia_devcluster.controllers.job.outcome import Outcome, deadline_of, decide_outcome, is_over
from gryvia_devcluster.controllers.job.pods import discard, is_indexed, is_tracked, release
from gryvia_devcluster.controllers.job.population import Change, populate
from gryvia_devcluster.controllers.job.tally import Tally, count
from gryvia_devcluster.controllers.podstate import condition, is_active, is_deleting, is_ready
from gryvia_devcluster.types import Json

DEFAULT_BACKOFF = timedelta(seconds=10)


def sync_job(
    job: Json, pods: Sequence[Json], now: datetime, *, backoff_base: timedelta = DEFAULT_BACKOFF
) -> list[Action]:
    if is_over(job):
        return _after_the_end(job, pods, now)
    tally = count(job, pods)
    status = _counted_status(job, tally)
    events: list[Action] = []
    writes: list[Action] = [release(pod) for pod in tally.counted]
    outcome = decide_outcome(job, tally, now)
    if outcome is not None:
        writes += discard(job, list(tally.active))
        events += _close(job, status, outcome, tally, now)
    elif not is_deleting(job):
        events += _suspend_or_start(job, status, now)
        change = populate(job, tally, pods, now, backoff_base)
        writes += change.actions
        status.update(_activity(job, tally, change))
        if (deadline := _deadline(job, status)) is not None:
            writes.append(Again(deadline))
    status = {key: value for key, value in status.items() if value not in (None, "")}
    changed = status != job.get("status", {})
    return [*([Replace({**job, "status": status}, "status")] if changed else []), *writes, *events]


def _after_the_end(job: Json, pods: Sequence[Json], now: datetime) -> list[Action]:
    actions: list[Action] = [release(pod) for pod in pods if is_tracked(pod) and not is_active(pod)]
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is None or is_deleting(job):
        return actions
    ended = condition(job, "Complete") or condition(job, "Failed")
    expiry = parse(ended["lastTransitionTime"] if ended else stamp(now)) + timedelta(seconds=ttl)
    return [*actions, Remove(job, "Foreground") if now >= expiry else Again(expiry)]


def _counted_status(job: Json, tally: Tally) -> Json:
    status: Json = copy.deepcopy(job.get("status", {}))
    status.update(
        active=len(tally.active) or None,
        succeeded=tally.succeeded or None,
        failed=tally.failed or None,
        terminating=len(tally.terminating),
        ready=sum(map(is_ready, tally.active)),
        uncountedTerminatedPods={},
    )
    if is_indexed(job):
        status["completedIndexes"] = format_indexes(tally.succeeded_indexes)
        if job["spec"].get("backoffLimitPerIndex") is not None:
            status["failedIndexes"] = format_indexes(tally.failed_indexes)
    return status


def _activity(job: Json, tally: Tally, change: Change) -> Json:
    return {
        "active": (len(tally.active) + change.created - len(change.removed)) or None,
        "ready": sum(is_ready(pod) for pod in tally.active if pod["metadata"]["name"] not in change.removed),
        "terminating": len(tally.terminating) + len(change.removed),
    }


def _close(job: Json, status: Json, outcome: Outcome, tally: Tally, now: datetime) -> list[Action]:
    """Announce the end, and state it once nothing runs any more."""
    set_condition(status, outcome.interim, True, outcome.reason, outcome.message, now)
    if not status.get("startTime"):
        status["startTime"] = stamp(now)
    if tally.alive:
        status.update(active=None, ready=0, terminating=tally.alive)
        return []
    set_condition(status, outcome.kind, True, outcome.reason, outcome.message, now)
    if outcome.kind == "Complete":
        status["completionTime"] = stamp(now)
        return [Emit(job, "Completed", "Job completed")]
    return [Emit(job, outcome.reason, outcome.message, "Warning")]


def _suspend_or_start(job: Json, status: Json, now: datetime) -> list[Action]:
    """Keep startTime and the Suspended condition true to spec.suspend; a resumed Job starts its deadline anew."""
    suspended = condition(job, "Suspended")
    if job["spec"].get("suspend"):
        status["startTime"] = None
        if set_condition(status, "Suspended", True, "JobSuspended", "Job suspended", now):
            return [Emit(job, "Suspended", "Job suspended")]
        return []
    if not status.get("startTime"):
        status["startTime"] = stamp(now)
    if suspended is not None and set_condition(status, "Suspended", False, "JobResumed", "Job resumed", now):
        return [Emit(job, "Resumed", "Job resumed")]
    return []


def _deadline(job: Json, status: Json) -> datetime | None:
    return None if job["spec"].get("suspend") else deadline_of({**job, "status": status})


def set_condition(status: Json, kind: str, value: bool, reason: str, message: str, now: datetime) -> bool:
    """Set a Job condition; True if its status flipped."""
    conditions = [dict(c) for c in status.get("conditions") or []]
    wanted = {"type": kind, "status": str(value), "reason": reason, "message": message}
    old = next((c for c in conditions if c["type"] == kind), None)
    if old is not None and old["status"] == wanted["status"]:
        return False
    conditions = [c for c in conditions if c["type"] != kind]
    conditions.append({**wanted, "lastProbeTime": stamp(now), "lastTransitionTime": stamp(now)})
    status["conditions"] = conditions
    return True
