"""Which trials start now: as many as there are free slots, each at a point of its own.

A point whose trial was lost to the infrastructure runs again before anything new, at most RERUNS times; every other point
is one that was never tried, in this study or in those it is warm-started from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.trials import TrialRecord, trial_name
from gryvia_common.runtime.plan import Apply
from gryvia_common.runtime.world import World
from gryvia_search.search import Known, Search, seed, seen_by_model
from gryvia_search.space import Point, Space
from gryvia_tuner import trials
from gryvia_tuner.settings import TunerSettings
from gryvia_tuner.trials import Tuner

RERUNS = 3


@dataclass(frozen=True, slots=True)
class Launched:
    """The new trials, their jobs, and whether there was nothing left to try."""

    records: Mapping[int, TrialRecord] = field(default_factory=dict)
    apply: tuple[Apply, ...] = ()
    exhausted: bool = False


def used(records: Iterable[TrialRecord]) -> int:
    """How much of maxTrials is used up: every trial that was not lost, and every point that was lost too often."""
    losses: Counter[Point] = Counter()
    count = 0
    for record in records:
        if record.lost:
            losses[tuple(text for _, text in sorted(record.parameters.items()))] += 1
        else:
            count += 1
    return count + sum(times > RERUNS for times in losses.values())


def launch(
    tuner: Tuner,
    world: World,
    space: Space,
    records: Mapping[int, TrialRecord],
    warm: Sequence[TrialRecord],
    stopping: int,
    search: Search,
    settings: TunerSettings,
    now: datetime,
) -> Launched:
    """`stopping`: stopped trials whose jobs still hold a slot."""
    spec = tuner.spec
    slots = max(1, min(spec.parallelism, settings.tuner_max_parallelism))
    taken = stopping + sum(record.active for record in records.values())
    room = min(slots - taken, spec.max_trials - used(records.values()))
    if room <= 0:
        return Launched()
    ordered = [records[number] for number in sorted(records)]
    model = list(seen_by_model(_known(space, [*warm, *ordered], spec.objective.direction)))
    tried = {point for record in (*warm, *ordered) if (point := space.point(record.parameters)) is not None}
    last = space.point(ordered[-1].parameters) if ordered else None
    again = _lost_points(space, ordered)
    started: dict[int, TrialRecord] = {}
    apply: list[Apply] = []
    for number in _free_numbers(records, room):
        point = (
            again.pop(0)
            if again
            else search.suggest(spec.search_algorithm, space, seed(tuner.uid, number), model, tried, last)
        )
        if point is None:
            return Launched(started, tuple(apply), exhausted=True)
        record = TrialRecord(number=number, parameters=space.parameters(point), phase="Pending")
        refusal = world.refusal(AI_JOB.resource, trial_name(tuner.name, number))
        if refusal is not None:
            record = trials.failed(record, f"{trials.REFUSED}: {refusal.message}", now)
        else:
            model.append(Known(point, None))
            apply.append(Apply(AI_JOB.resource, trials.manifest(tuner, number, record.parameters), create_only=True))
        started[number] = record
        tried.add(point)
        last = point
    return Launched(started, tuple(apply))


def _known(space: Space, records: Iterable[TrialRecord], direction: str) -> list[Known]:
    """What the search learns from: results and running trials. Smaller is better."""
    sign = 1.0 if direction == "minimize" else -1.0
    known = []
    for record in records:
        point = space.point(record.parameters)
        if point is not None and record.active:
            known.append(Known(point, None))
        elif point is not None and record.phase == "Succeeded" and record.value is not None:
            known.append(Known(point, sign * record.value))
    return known


def _lost_points(space: Space, ordered: Sequence[TrialRecord]) -> list[Point]:
    """Points whose newest trial was lost, unless they were lost too often; in the order of their loss."""
    newest: dict[Point, TrialRecord] = {}
    losses: dict[Point, int] = {}
    if not any(record.lost for record in ordered):
        return []
    for record in ordered:
        point = space.point(record.parameters)
        if point is not None:
            newest.pop(point, None)
            newest[point] = record
            losses[point] = losses.get(point, 0) + record.lost
    return [point for point, record in newest.items() if record.lost and losses[point] <= RERUNS]


def _free_numbers(records: Collection[int], count: int) -> list[int]:
    """The next numbers; one that was left out (its job could not be created before a crash) comes first."""
    missing = len(records) - (max(records) + 1 if records else 0)
    if missing == 0:
        return list(range(len(records), len(records) + count))
    free: list[int] = []
    number = 0
    while len(free) < count:
        if number not in records:
            free.append(number)
        number += 1
    return free
