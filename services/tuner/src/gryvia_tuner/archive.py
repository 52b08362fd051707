"""The archive: ConfigMaps `<tuner>-trials-<k>`, so that 20,000 trials do not live in one object.

Invariant: a trial is in a ConfigMap that the world shows before it leaves the status. A block holds the trials of a range of
numbers and is written whole; it is written when FLUSH ended trials have left the newest, so a write comes about every 100 trials
(one more for each straggler of an older block). `sizes` shrinks all three numbers for spaces with very long values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.trials import (
    ARCHIVE_KEY,
    TUNER_LABEL,
    TrialRecord,
    archive_name,
    archive_text,
    decode_block,
    encode_block,
    tuner_label,
)
from gryvia_common.kube.children import owned_metadata
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS, GROUP
from gryvia_common.runtime.plan import Apply
from gryvia_search.space import Space
from gryvia_tuner.trials import LONGEST_MESSAGE, Tuner

BLOCK = 500
NEWEST = 50
FLUSH = 100
BLOCK_BYTES = 800_000
STATUS_BYTES = 200_000
ROW_BYTES = LONGEST_MESSAGE + 500

ReadBlock = Callable[[str], tuple[TrialRecord, ...]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Trials in a block, newest ended trials kept in the status, and how many more collect before they are archived."""

    block: int
    newest: int
    flush: int


LARGEST = Sizes(BLOCK, NEWEST, FLUSH)


def sizes(space: Space) -> Sizes:
    """For the widest trial of this space."""
    values = sum(dimension.longest + 16 for dimension in space.dimensions)
    names = sum(len(name) + 8 for name in space.names)
    kept = max(2, min(NEWEST + FLUSH, STATUS_BYTES // (ROW_BYTES + values + names)))
    newest = max(1, kept * NEWEST // (NEWEST + FLUSH))
    return Sizes(max(1, min(BLOCK, BLOCK_BYTES // (ROW_BYTES + values))), newest, max(1, kept - newest))


def read_block(text: str) -> tuple[TrialRecord, ...]:
    """A block that cannot be read counts as empty: its trials are adopted again from their jobs, and it is written anew."""
    try:
        return decode_block(text)
    except (ValueError, LookupError, TypeError):
        return ()


def read(config_maps: Iterable[Json], tuner: str, read_block: ReadBlock) -> dict[int, TrialRecord]:
    """Every archived trial by number."""
    found: dict[int, TrialRecord] = {}
    for config_map in config_maps:
        text = archive_text(config_map, tuner)
        if text is not None:
            found.update((record.number, record) for record in read_block(text))
    return found


def due(
    tuner: Tuner, recent: Mapping[int, TrialRecord], archived: Mapping[int, TrialRecord], sizes: Sizes
) -> tuple[Apply, ...]:
    """The blocks to write now. `recent`: the trials of the status."""
    waiting = [record for record in recent.values() if not record.active and record.number not in archived]
    if len(waiting) < sizes.newest + sizes.flush:
        return ()
    waiting.sort(key=lambda record: (record.ended, record.number))
    leaving = {record.number: record for record in waiting[: len(waiting) - sizes.newest]}
    kept = {**leaving, **archived}
    blocks = sorted({number // sizes.block for number in leaving})
    return tuple(
        _block(tuner, block, [kept[n] for n in range(block * sizes.block, (block + 1) * sizes.block) if n in kept])
        for block in blocks
    )


def window(
    recent: Mapping[int, TrialRecord], archived: Mapping[int, TrialRecord], best: TrialRecord | None, sizes: Sizes
) -> list[TrialRecord]:
    """What stands in the status: running, best, newest, and whatever is not in the archive yet; by number."""
    ended = sorted((record.ended, number) for number, record in recent.items() if not record.active)
    newest = {number for _, number in ended[-sizes.newest :]}
    kept = {
        number: record
        for number, record in recent.items()
        if record.active or number in newest or number not in archived
    }
    if best is not None:
        kept[best.number] = best
    return [kept[number] for number in sorted(kept)]


def _block(tuner: Tuner, block: int, records: Sequence[TrialRecord]) -> Apply:
    meta = owned_metadata(
        tuner.raw,
        AUTO_TUNER.resource,
        archive_name(tuner.name, block),
        {TUNER_LABEL: tuner_label(tuner.name), f"{GROUP}/component": "trial-archive"},
    )
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {ARCHIVE_KEY: encode_block(records)}}
    return Apply(CONFIG_MAPS, manifest)
