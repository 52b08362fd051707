"""Which pods a running Job needs now: the ones to make, the ones to take away.

Indexed Jobs fill the lowest missing indexes first, one pod an index; NonIndexed Jobs only count. A Job that had
failures waits for its back-off (per index with backoffLimitPerIndex) before it makes another pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gryvia_devcluster.controllers.actions import Action, Again
from gryvia_devcluster.controllers.job.pods import create_pod, discard, index_of, is_indexed
from gryvia_devcluster.controllers.job.tally import Tally, next_start, only_replaces_failed
from gryvia_devcluster.controllers.podstate import is_ready
from gryvia_devcluster.types import Json


@dataclass(slots=True)
class Change:
    actions: list[Action] = field(default_factory=list)
    created: int = 0
    removed: frozenset[str] = frozenset()


def populate(job: Json, tally: Tally, pods: Sequence[Json], now: datetime, base: timedelta) -> Change:
    if job["spec"].get("suspend"):
        return _without(job, list(tally.active))
    if is_indexed(job):
        return _populate_indexed(job, tally, pods, now, base)
    held = len(tally.active) + (len(tally.terminating) if only_replaces_failed(job) else 0)
    wanted = _wanted(job, tally)
    if len(tally.active) > wanted:
        return _without(job, _least_useful(tally.active)[: len(tally.active) - wanted])
    change = Change()
    missing = max(wanted - held, 0)
    if missing and not _waits(change, next_start(job, pods, base), now):
        change.actions += [create_pod(job, None) for _ in range(missing)]
        change.created = missing
    return change


def _wanted(job: Json, tally: Tally) -> int:
    parallelism = int(job["spec"].get("parallelism", 1))
    completions: int | None = job["spec"].get("completions")
    if completions is None:
        return min(parallelism, len(tally.active)) if tally.succeeded else parallelism
    return min(parallelism, max(completions - tally.succeeded, 0))


def _populate_indexed(job: Json, tally: Tally, pods: Sequence[Json], now: datetime, base: timedelta) -> Change:
    completions, parallelism = int(job["spec"]["completions"]), int(job["spec"].get("parallelism", 1))
    closed = tally.succeeded_indexes | tally.failed_indexes
    kept: dict[int, Json] = {}
    surplus: list[Json] = []
    for pod in sorted(tally.active, key=lambda p: str(p["metadata"]["creationTimestamp"])):
        index = index_of(pod)
        if index is None or index >= completions or index in closed or index in kept:
            surplus.append(pod)
        else:
            kept[index] = pod
    if len(kept) > parallelism:
        surplus += _least_useful(list(kept.values()))[: len(kept) - parallelism]
    change = _without(job, surplus)
    held = set(kept)
    if only_replaces_failed(job):
        held |= {i for pod in tally.terminating if (i := index_of(pod)) is not None}
    free = [index for index in range(completions) if index not in closed and index not in held]
    room = max(min(parallelism, completions - len(closed)) - len(held), 0)
    _fill(job, tally, pods, free, room, now, base, change)
    return change


def _fill(
    job: Json,
    tally: Tally,
    pods: Sequence[Json],
    free: list[int],
    room: int,
    now: datetime,
    base: timedelta,
    change: Change,
) -> None:
    per_index = job["spec"].get("backoffLimitPerIndex") is not None
    if not per_index and room and free and _waits(change, next_start(job, pods, base), now):
        return
    for index in free:
        if change.created >= room:
            break
        if per_index and _waits(change, next_start(job, pods, base, index), now):
            continue
        change.actions.append(create_pod(job, index, tally.index_failures.get(index, 0) if per_index else None))
        change.created += 1


def _waits(change: Change, until: datetime | None, now: datetime) -> bool:
    if until is None or now >= until:
        return False
    change.actions.append(Again(until))
    return True


def _without(job: Json, pods: list[Json]) -> Change:
    return Change(actions=discard(job, pods), removed=frozenset(pod["metadata"]["name"] for pod in pods))


def _least_useful(pods: Sequence[Json]) -> list[Json]:
    """Pods in the order they should go: unready before ready, young before old."""
    newest_first = sorted(pods, key=lambda p: (p["metadata"]["creationTimestamp"], p["metadata"]["name"]), reverse=True)
    return sorted(newest_first, key=is_ready)
