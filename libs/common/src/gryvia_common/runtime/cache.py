"""What the service knows: the newest state of every object it reads, as bytes.

Invariant: within one stream time never runs backwards. An entry is replaced only by a higher resourceVersion of the same uid, or
by another uid (which is "gone" and "new"). A new stream is believed whatever it says of what it has not named yet, also an
older version: the API server may have been restored from a backup. The service's own writes go in as the API server answered
them, so a pass sees what the last one did although the bus has not carried it round yet; the echo from the bus then is not
newer and wakes nobody.

Bodies stay bytes and are decoded at use: 1 KB an object instead of 5.6 KB as dicts (measured). After the stream was wiped
(`begin_replay`) every entry is unconfirmed until the replay has named it again; `end_replay` forgets the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from gryvia_common.kube.children import owner_of
from gryvia_common.kube.objects import Json, Key, key_of, metadata, uid_of, version_of
from gryvia_common.runtime.controller import Index, Selection
from gryvia_common.runtime.world import Children

ObjectId = tuple[str, Key]
"""Plural and key: one object of the cache."""
OwnerId = tuple[str, str, str]
"""Plural, namespace and name of a Gryvia object that owns others."""

REMEMBERED_REMOVALS = 10_000
"""How many removals are kept to recognise a late echo of a dead object; older ones cannot still be on the way."""


@dataclass(slots=True)
class _Entry:
    uid: str
    version: int
    body: bytes
    owner: OwnerId | None
    owner_uid: str
    selections: frozenset[Selection]
    epoch: int


@dataclass(frozen=True, slots=True)
class Change:
    """What `put` or `remove` changed: the object, who owns it now (or did last), and the selections it was or is in."""

    object: ObjectId
    owner: OwnerId | None
    selections: frozenset[Selection] = frozenset()


class ObjectCache:
    """See the module's docstring."""

    def __init__(self, indexes: Sequence[Index] = ()) -> None:
        self._indexes = {
            plural: [index for index in indexes if index.resource.plural == plural]
            for plural in {index.resource.plural for index in indexes}
        }
        self._selected: dict[Selection, set[ObjectId]] = {}
        self._entries: dict[ObjectId, _Entry] = {}
        self._owned: dict[OwnerId, dict[str, set[Key]]] = {}
        self._removed: dict[ObjectId, tuple[str, int]] = {}
        self._epoch = 0

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, plural: str, obj: Json, body: bytes | None = None) -> Change | None:
        """Take in a state of an object; None when it is not newer than what is known. `body`: its bytes, if they are at hand."""
        id: ObjectId = (plural, key_of(obj))
        uid, version = uid_of(obj), version_of(obj)
        removed = self._removed.get(id)
        if removed and removed[0] == uid and version <= removed[1]:
            return None
        known = self._entries.get(id)
        if known is not None and known.uid == uid:
            if version == known.version or (version < known.version and known.epoch == self._epoch):
                known.epoch = self._epoch
                return None
        elif known is not None:
            if version < known.version and known.epoch == self._epoch:
                return None
            self._drop(id)
        self._removed.pop(id, None)
        found = owner_of(obj)
        owner = (found.plural, found.namespace, found.name) if found else None
        if body is None:
            metadata(obj).pop("managedFields", None)
            body = orjson.dumps(obj)
        if known is not None and known.owner != owner:
            self._unindex(id, known.owner)
        before = known.selections if known is not None else frozenset[Selection]()
        selections = self._selections(plural, obj)
        self._select(id, before if id in self._entries else frozenset(), selections)
        self._entries[id] = _Entry(uid, version, body, owner, found.uid if found else "", selections, self._epoch)
        if owner is not None:
            self._owned.setdefault(owner, {}).setdefault(plural, set()).add(id[1])
        return Change(id, owner, before | selections)

    def remove(self, plural: str, key: Key, uid: str, version: int) -> Change | None:
        """The object with this uid is gone as of `version`; None when that is no news or another uid lives there by now."""
        id: ObjectId = (plural, key)
        known = self._entries.get(id)
        if known is None or known.uid != uid:
            return None
        self._drop(id)
        self._removed[id] = (uid, max(version, known.version))
        while len(self._removed) > REMEMBERED_REMOVALS:
            self._removed.pop(next(iter(self._removed)))
        return Change(id, known.owner, known.selections)

    def was_removed(self, plural: str, key: Key) -> bool:
        """Whether an object of this name is remembered to have gone."""
        return (plural, key) in self._removed

    def get(self, plural: str, key: Key) -> Json | None:
        entry = self._entries.get((plural, key))
        return None if entry is None else _decode(entry.body)

    def uid(self, plural: str, key: Key) -> str | None:
        entry = self._entries.get((plural, key))
        return None if entry is None else entry.uid

    def children(self, owner: OwnerId, owner_uid: str, plural: str) -> Children:
        """What belongs to the owner with this uid, by name, as it is now: what is put later does not show. Children of an
        earlier object of the same name are not its own."""
        keys = sorted(self._owned.get(owner, {}).get(plural, ()))
        found = [(key.name, entry.body) for key in keys if (entry := self._entries[plural, key]).owner_uid == owner_uid]
        return Children([name for name, _ in found], lambda index: _decode(found[index][1]))

    def select(self, selection: Selection) -> Children:
        """What is in the selection, by name, as it is now."""
        found = [(id[1].name, self._entries[id].body) for id in sorted(self._selected.get(selection, ()))]
        return Children([name for name, _ in found], lambda index: _decode(found[index][1]))

    def keys(self, plural: str) -> Iterator[Key]:
        return (key for kind, key in list(self._entries) if kind == plural)

    def begin_replay(self) -> None:
        """The stream is new to us: from here on every entry must be named again."""
        self._epoch += 1
        self._removed.clear()

    def end_replay(self) -> list[Change]:
        """The replay is complete: what it did not name is gone."""
        stale = [(id, entry) for id, entry in self._entries.items() if entry.epoch != self._epoch]
        for id, _ in stale:
            self._drop(id)
        self._removed.clear()
        return [Change(id, entry.owner, entry.selections) for id, entry in stale]

    def _selections(self, plural: str, obj: Json) -> frozenset[Selection]:
        indexes = self._indexes.get(plural, ())
        return frozenset(Selection(index.name, key) for index in indexes for key in index.keys(obj))

    def _select(self, id: ObjectId, before: frozenset[Selection], now: frozenset[Selection]) -> None:
        for selection in now - before:
            self._selected.setdefault(selection, set()).add(id)
        for selection in before - now:
            members = self._selected[selection]
            members.discard(id)
            if not members:
                del self._selected[selection]

    def _drop(self, id: ObjectId) -> None:
        entry = self._entries.pop(id)
        self._unindex(id, entry.owner)
        self._select(id, entry.selections, frozenset())

    def _unindex(self, id: ObjectId, owner: OwnerId | None) -> None:
        if owner is None:
            return
        by_plural = self._owned.get(owner, {})
        keys = by_plural.get(id[0])
        if keys is not None:
            keys.discard(id[1])
            if not keys:
                del by_plural[id[0]]
        if not by_plural:
            self._owned.pop(owner, None)


def _decode(body: bytes) -> Json:
    obj: Json = orjson.loads(body)
    return obj
