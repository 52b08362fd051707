"""warmStartFrom: finished trials of other tuners as knowledge of this one.

Reused are succeeded trials with a value whose parameters are exactly these and lie in this space, from tuners of the same
namespace with the same objective. They inform the search and their points are not run again; they are not trials of this study
(no count, no bestTrial). A tuner that cannot serve is named in the condition WarmStarted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.trials import ReadBlock, TrialRecord, archive_name, records_of
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.controller import Lookup, Ref
from gryvia_common.runtime.world import World
from gryvia_search.space import Space
from gryvia_tuner.trials import Tuner

BLOCKS = 40


@dataclass(frozen=True, slots=True)
class Warm:
    """`records` in the order of the tuners and numbers; `notes`: tuners that could not serve, and why."""

    records: tuple[TrialRecord, ...] = ()
    notes: tuple[str, ...] = ()


def refs(tuner: Tuner, get: Lookup) -> Iterable[Ref]:
    """The other tuners and the first 40 blocks (20,000 trials) of their archives."""
    for name in tuner.spec.warm_start_from or ():
        yield Ref(AUTO_TUNER.resource, tuner.namespace, name)
        for block in range(BLOCKS):
            yield Ref(CONFIG_MAPS, tuner.namespace, archive_name(name, block))


def reused(tuner: Tuner, world: World, space: Space, read_block: ReadBlock) -> Warm:
    records: list[TrialRecord] = []
    notes: list[str] = []
    own = {"metricName": tuner.spec.objective.metric_name, "direction": tuner.spec.objective.direction}
    for name in tuner.spec.warm_start_from or ():
        other = world.get(AUTO_TUNER.resource, tuner.namespace, name)
        if name == tuner.name:
            notes.append(f"{name} is this tuner itself")
        elif other is None:
            notes.append(f"{name} does not exist in namespace {tuner.namespace}")
        elif not own.items() <= ((other.get("spec") or {}).get("objective") or {}).items():
            notes.append(f"{name} has another objective (metricName or direction)")
        else:
            blocks = (world.get(CONFIG_MAPS, tuner.namespace, archive_name(name, block)) for block in range(BLOCKS))
            history = records_of(other, (block for block in blocks if block is not None), read_block)
            found = [record for record in history if _fits(record, space)]
            records.extend(found)
            if not found:
                notes.append(f"{name} has no finished trial of these parameters")
    return Warm(tuple(records), tuple(notes))


def _fits(record: TrialRecord, space: Space) -> bool:
    point = space.point(record.parameters)
    return record.result is not None and point is not None and space.encode(point) is not None
