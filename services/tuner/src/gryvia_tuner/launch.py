"""Which trials start now: as many as there are free slots, each at a point of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count, islice

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.trials import TrialRecord
from gryvia_common.runtime.plan import Apply
from gryvia_search.history import History, used
from gryvia_search.search import seed
from gryvia_search.space import Space
from gryvia_tuner import trials
from gryvia_tuner.study import Study, Tools


@dataclass(frozen=True, slots=True)
class Launched:
    """The new trials, their jobs, and whether there was nothing left to try."""

    records: Mapping[int, TrialRecord] = field(default_factory=dict)
    apply: tuple[Apply, ...] = ()
    exhausted: bool = False


def launch(study: Study, space: Space, tools: Tools) -> Launched:
    spec, tuner, known = study.spec, study.tuner, study.records
    slots = max(1, min(spec.parallelism, tools.settings.tuner_max_parallelism))
    taken = len(study.stopping) + len(study.active)
    room = min(slots - taken, spec.max_trials - used(known.values()))
    if room <= 0:
        return Launched()
    history = History(space, [known[n] for n in sorted(known)], study.warm.records, minimize=study.minimize)
    started: dict[int, TrialRecord] = {}
    apply: list[Apply] = []
    for number in islice((number for number in count() if number not in known), room):
        refusal = study.world.refusal(AI_JOB.resource, study.name_of(number))
        point = history.next(tools.search, spec.search_algorithm, seed(tuner.uid, number), runs=refusal is None)
        if point is None:
            return Launched(started, tuple(apply), exhausted=True)
        record = TrialRecord(number=number, parameters=space.parameters(point), phase="Pending")
        if refusal is not None:
            record = record.ended_as("Failed", f"{trials.REFUSED}: {refusal.message}", timestamp(study.now))
        else:
            apply.append(Apply(AI_JOB.resource, trials.manifest(tuner, number, record.parameters), create_only=True))
        started[number] = record
    return Launched(started, tuple(apply))
