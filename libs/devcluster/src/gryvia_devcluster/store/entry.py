"""One version of one object: as a dict for the rooms in this process, as JSON bytes for the wire.

Invariant: an Entry never changes. The bytes are made once, on first need, and shared by every watcher and every GET. A
version that has been superseded keeps only its bytes (about 1 KB instead of 6 KB of dict), because history is long and is
almost never read.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from gryvia_devcluster.types import Json


class Key(NamedTuple):
    """`namespace` is "" for cluster-scoped objects."""

    namespace: str
    name: str


class Entry:
    __slots__ = ("_obj", "_raw", "key", "rv")

    def __init__(self, key: Key, rv: int, obj: Json | None = None, raw: bytes | None = None) -> None:
        self.key = key
        self.rv = rv
        self._obj = obj
        self._raw = raw

    @property
    def obj(self) -> Json:
        if self._obj is None:
            loaded: Json = orjson.loads(self._raw or b"{}")
            return loaded
        return self._obj

    @property
    def raw(self) -> bytes:
        if self._raw is None:
            self._raw = orjson.dumps(self._obj)
        return self._raw

    def retain(self) -> Json:
        """The object as a dict, kept from now on (a live entry is read many times)."""
        if self._obj is None:
            self._obj = orjson.loads(self._raw or b"{}")
        return self._obj

    def retire(self) -> None:
        """Keep the bytes only: this version has been replaced."""
        self._raw = self.raw
        self._obj = None
