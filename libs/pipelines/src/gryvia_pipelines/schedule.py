"""When a scheduled workflow runs next: which scheduled time starts a run now, and what becomes of those that were missed.

`status.nextScheduleTime` is the cursor: the first scheduled time that nothing has been decided about. A run in progress leaves it
where it is, so whatever came due meanwhile is one follow-up, right after, for the newest of these times, however long the run was
and however often the service restarted. What came due while nothing ran and nobody looked (an outage) is missed: `catchUp` none
drops it unless it is less than a minute late, latest (the default) runs the newest, all runs the newest `catchUpLimit`, oldest
first, one after the other; they wait in `status.pendingRuns`. Times that never get a run are counted in `status.missedRuns`.

Times during a suspension are neither missed nor made up for, and what waited before it is dropped. An edit of the schedule or the
zone begins anew when it is seen. The cursor only moves forward: a clock that goes back replays nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from gryvia_common.errors import Terminal
from gryvia_common.kinds.conditions import parse_timestamp, timestamp
from gryvia_common.kinds.workflow import GryviaWorkflowSpec, GryviaWorkflowStatus
from gryvia_pipelines.cron import Cron, parse_cron, parse_zone

ON_TIME = timedelta(seconds=60)
"""With catchUp none: how late a run may start and still count as on time (a restart of the service, a busy queue)."""

CATCH_UP_LIMIT = 10
MOST_PENDING = 1000
SUSPENDED = "suspended: no scheduled run starts while spec.suspend is true"
NEVER = "spec.schedule {expression!r} names no time within the next five years: change it, or remove it to run once"
CLOCK = "the clock says {now}, before the last run's time {last}: the schedule goes on after that"


@dataclass(frozen=True, slots=True)
class Due:
    """`start`: the scheduled time of the run to begin now. `next`, `missed` and `pending` are what the status should say; with a
    run in progress or nothing to start, look again at `next`. `message`: why nothing comes, if so."""

    start: datetime | None = None
    next: datetime | None = None
    missed: int = 0
    pending: tuple[datetime, ...] = ()
    message: str = ""

    def fields(self) -> dict[str, object]:
        """The fields of the status by their names in code, None where there is nothing to say."""
        return {
            "next_schedule_time": timestamp(self.next) if self.next else None,
            "missed_runs": self.missed or None,
            "pending_runs": [timestamp(one) for one in self.pending] or None,
        }


def problems(spec: GryviaWorkflowSpec) -> tuple[str, ...]:
    """What is wrong with schedule and the fields about it, as sentences that name field, value and fix."""
    found = []
    about = (spec.time_zone, spec.catch_up, spec.catch_up_limit, spec.suspend or None)
    if spec.schedule is None:
        named = zip(("timeZone", "catchUp", "catchUpLimit", "suspend: true"), about, strict=True)
        said = "is about scheduled runs, and there is no spec.schedule: set one, or remove it"
        return tuple(f"spec.{name} {said}" for name, value in named if value is not None)
    try:
        parse_cron(spec.schedule, parse_zone(spec.time_zone or "UTC"))
    except Terminal as error:
        found.append(str(error))
    if spec.catch_up_limit is not None and spec.catch_up != "all":
        found.append("spec.catchUpLimit counts with spec.catchUp all only: set that, or remove the limit")
    if (spec.catch_up_limit or 0) > MOST_PENDING:
        found.append(f"spec.catchUpLimit {spec.catch_up_limit} is too many: use 1 to {MOST_PENDING}")
    return tuple(found)


def never(spec: GryviaWorkflowSpec, now: datetime) -> str:
    """Why no scheduled run will come, empty when one will. No problem of the spec, which has none: years bring other days."""
    if spec.schedule is None or parse_cron(spec.schedule, parse_zone(spec.time_zone or "UTC")).after(now):
        return ""
    return NEVER.format(expression=spec.schedule)


def due(
    spec: GryviaWorkflowSpec,
    status: GryviaWorkflowStatus,
    created_at: datetime,
    now: datetime,
    *,
    running: bool,
    edited: bool,
) -> Due:
    """`running`: a run is in progress. `edited`: the generation is not the one that the status was written for. The spec has no
    `problems`; of the status only what is about the schedule is read."""
    cron = parse_cron(spec.schedule or "", parse_zone(spec.time_zone or "UTC"))
    waiting = [moment for text in status.pending_runs or () if (moment := _moment(text))]
    pending = tuple(moment for moment in waiting if not edited or cron.has(moment))
    pending = pending[max(0, len(pending) - _most(spec)) :]
    missed = (status.missed_runs or 0) + len(waiting) - len(pending)
    if spec.suspend:
        return Due(missed=missed + len(pending), message=SUSPENDED)
    cursor = _cursor(cron, status, created_at, now, edited)
    if cursor is None:
        return Due(missed=missed, pending=pending, message=NEVER.format(expression=spec.schedule))
    if running:
        return Due(next=cursor, missed=missed, pending=pending)
    if pending:
        return Due(pending[0], cursor, missed, pending[1:])
    if cursor > now:
        return Due(next=cursor, missed=missed, message=_clock_went_back(status, now))
    chosen = _chosen(cron, spec, cursor, _moment(status.completion_time), now)
    missed += cron.count(cursor, now) - len(chosen)
    return Due(chosen[0] if chosen else None, cron.after(now), missed, chosen[1:])


def _cursor(
    cron: Cron, status: GryviaWorkflowStatus, created_at: datetime, now: datetime, edited: bool
) -> datetime | None:
    stored = _moment(status.next_schedule_time)
    if stored is None and status.phase is None:
        return cron.after(created_at)
    if stored is None or (edited and (stored > now or not cron.has(stored))):
        return cron.after(max(now, _moment(status.last_schedule_time) or now))
    return stored


def _chosen(
    cron: Cron, spec: GryviaWorkflowSpec, cursor: datetime, freed: datetime | None, now: datetime
) -> tuple[datetime, ...]:
    """Which of cursor..now get a run, in order. `freed`: when the last run ended; up to then all are one follow-up."""
    newest = cron.latest(cursor, now, 1)
    if not newest:
        return ()
    if spec.catch_up == "none":
        in_time = now - max(newest[0], freed or newest[0]) <= ON_TIME
        return newest if in_time else ()
    limit = _most(spec)
    if limit == 1:
        return newest
    if freed is None or freed < cursor:
        return cron.latest(cursor, now, limit)
    follow_up = cron.latest(cursor, min(freed, now), 1)
    return (follow_up + cron.latest(freed + timedelta(microseconds=1), now, limit))[-limit:]


def _most(spec: GryviaWorkflowSpec) -> int:
    """How many missed times are made up for."""
    policy = spec.catch_up or "latest"
    return {"none": 0, "latest": 1, "all": spec.catch_up_limit or CATCH_UP_LIMIT}[policy]


def _clock_went_back(status: GryviaWorkflowStatus, now: datetime) -> str:
    last = _moment(status.last_schedule_time)
    return CLOCK.format(now=timestamp(now), last=timestamp(last)) if last and last > now + ON_TIME else ""


def _moment(text: str | None) -> datetime | None:
    """None also for what a person has written into the status that is no time."""
    try:
        return parse_timestamp(text) if text else None
    except ValueError:
        return None
