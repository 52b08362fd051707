"""The archive: ConfigMaps `<tuner>-trials-<k>`, so that 20,000 trials do not live in one object.

Invariant: a trial is in a ConfigMap that the world shows before it leaves the status. A block holds the trials of a range of
numbers and is written whole; it is written when FLUSH ended trials have left the newest, so a write comes about every 100 trials
(one more for each straggler of an older block). `sizes_of` shrinks all three numbers for spaces with very long values.
"""

from __future__ import annotations

from dataclasses import dataclass

from gryvia_common.kinds.trials import ARCHIVE_KEY, LONGEST_MESSAGE, TrialRecord, archive_name, encode_block
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.plan import Apply
from gryvia_search.space import Space
from gryvia_tuner.study import Study
from gryvia_tuner.trials import child_metadata

BLOCK = 500
NEWEST = 50
FLUSH = 100
BLOCK_BYTES = 800_000
STATUS_BYTES = 200_000
ROW_BYTES = LONGEST_MESSAGE + 500


@dataclass(frozen=True, slots=True)
class Sizes:
    """Trials in a block, newest ended trials kept in the status, and how many more collect before they are archived."""

    block: int = BLOCK
    newest: int = NEWEST
    flush: int = FLUSH


def sizes_of(space: Space | None) -> Sizes:
    """For the widest trial of this space."""
    if space is None:
        return Sizes()
    values = sum(dimension.longest + 16 for dimension in space.dimensions)
    names = sum(len(name) + 8 for name in space.names)
    kept = max(2, min(NEWEST + FLUSH, STATUS_BYTES // (ROW_BYTES + values + names)))
    newest = max(1, kept * NEWEST // (NEWEST + FLUSH))
    return Sizes(max(1, min(BLOCK, BLOCK_BYTES // (ROW_BYTES + values))), newest, max(1, kept - newest))


def due(study: Study) -> tuple[Apply, ...]:
    """The blocks to write now."""
    sizes = sizes_of(study.space)
    waiting = [one for one in study.recent.values() if not one.active and one.number not in study.archived]
    if len(waiting) < sizes.newest + sizes.flush:
        return ()
    waiting.sort(key=lambda record: (record.ended, record.number))
    leaving = {record.number: record for record in waiting[: len(waiting) - sizes.newest]}
    blocks: dict[int, list[TrialRecord]] = {number // sizes.block: [] for number in sorted(leaving)}
    for number, record in {**leaving, **study.archived}.items():
        if number // sizes.block in blocks:
            blocks[number // sizes.block].append(record)
    return tuple(_written(study, block, records) for block, records in blocks.items())


def window(study: Study) -> list[TrialRecord]:
    """What stands in the status: running, best, newest, and whatever is not in the archive yet; by number."""
    ended = sorted((record.ended, number) for number, record in study.recent.items() if not record.active)
    newest = {number for _, number in ended[-sizes_of(study.space).newest :]}
    kept = {n: one for n, one in study.recent.items() if one.active or n in newest or n not in study.archived}
    if study.best is not None:
        kept[study.best.number] = study.best
    return [kept[number] for number in sorted(kept)]


def _written(study: Study, block: int, records: list[TrialRecord]) -> Apply:
    meta = child_metadata(study.tuner, archive_name(study.tuner.name, block), "trial-archive")
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {ARCHIVE_KEY: encode_block(records)}}
    return Apply(CONFIG_MAPS, manifest)
