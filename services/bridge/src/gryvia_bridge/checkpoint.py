"""What the stream holds, compared with what the API server lists: pure, and the only place that decides what is
published.

The stream is the bridge's checkpoint: there is no second store that could get out of step with it. Versions of one type
compare as integers; a deletion is newer than the state of the same version. Nothing older ever replaces something
newer, whatever its uid: another uid under the same name is younger exactly when its version is higher.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gryvia_bridge.cluster import WentBack
from gryvia_bridge.envelope import Envelope
from gryvia_common.bus.objects import StoredObject
from gryvia_common.bus.subjects import parse_object_subject
from gryvia_common.kube.objects import Key


@dataclass(frozen=True, slots=True)
class Entry:
    """What the stream holds of one key, and under which sequence."""

    partition: int
    uid: str
    version: int
    deleted: bool
    sequence: int


Table = dict[Key, Entry]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`strays`: subjects of keys that the stream also holds, newer, in another partition (a move was interrupted)."""

    table: Table
    strays: tuple[tuple[Key, Entry], ...]

    @property
    def newest(self) -> int:
        """The highest version in the stream: a list that is older comes from the past."""
        return max((entry.version for entry in self.table.values()), default=0)


def checkpoint(stored: Iterable[StoredObject]) -> Checkpoint:
    """The stream's messages of one type, by key."""
    table: Table = {}
    strays: list[tuple[Key, Entry]] = []
    for message in stored:
        key, entry = entry_of(message)
        other = table.setdefault(key, entry)
        if other is not entry:
            older, newer = sorted((entry, other), key=_age)
            table[key] = newer
            if not older.deleted:
                strays.append((key, older))
    return Checkpoint(table, tuple(strays))


def entry_of(message: StoredObject) -> tuple[Key, Entry]:
    address = parse_object_subject(message.subject)
    entry = Entry(address.partition, message.uid, message.version, message.op == "deleted", message.sequence)
    return Key(address.namespace, address.name), entry


def is_due(change: Envelope, entry: Entry | None) -> bool:
    """Whether `change` has to be published when the stream holds `entry`."""
    if entry is None:
        return True  # a deletion too: another bridge may have published the object meanwhile
    if (change.version, change.op == "deleted") > (entry.version, entry.deleted):
        return True
    return (
        change.op == "applied"
        and not entry.deleted
        and change.version == entry.version
        and change.partition != entry.partition
    )


class Comparison:
    """A checkpoint compared with one list, object by object, so that no more than a page of bodies is in memory.

    Tombstones come only from `vanished`, which may be asked for only when the list is complete. They carry the version
    of the list in which the object was missing."""

    def __init__(self, plural: str, stored: Checkpoint, version: int) -> None:
        self._plural = plural
        self._stored = stored
        self._version = version
        self._seen: set[Key] = set()

    def wants(self, change: Envelope) -> bool:
        """Whether a listed object has to be published. Notes that it exists. Raises WentBack."""
        self._seen.add(change.key)
        entry = self._stored.table.get(change.key)
        if entry is not None and change.version < entry.version <= self._version:
            raise WentBack(
                f"{self._plural} {change.key} has version {change.version} in the list of version {self._version}, and had "
                f"{entry.version} before: the API server has gone back to an earlier state"
            )
        return is_due(change, entry)

    def vanished(self, now: float) -> Iterator[Envelope]:
        for key, entry in self._stored.table.items():
            if key not in self._seen and not entry.deleted and entry.version <= self._version:
                yield tombstone(self._plural, key, entry, self._version, now)
        for key, entry in self._stored.strays:
            yield tombstone(self._plural, key, entry, entry.version, now, stray=True)


def tombstone(plural: str, key: Key, entry: Entry, version: int, now: float, *, stray: bool = False) -> Envelope:
    """The deletion of what `entry` says. A stray's carries the version of the state it removes, which is older than the
    key's own."""
    replaces = entry.sequence if stray else None
    return Envelope(plural, key, entry.partition, entry.uid, version, "deleted", b"", now, replaces)


def same(stream: Mapping[Key, Entry], believed: Mapping[Key, Entry], unchanged_since: Mapping[Key, Entry]) -> bool:
    """Whether the stream holds what we believe it holds. Keys that changed while the stream was read do not count,
    tombstones that ran out neither."""
    for key, entry in believed.items():
        if unchanged_since.get(key) is entry and not entry.deleted and stream.get(key) != entry:
            return False
    return all(key in believed or key in unchanged_since or entry.deleted for key, entry in stream.items())


def _age(entry: Entry) -> tuple[int, int]:
    return entry.version, entry.sequence
