"""The watch history: one log per resource type, one horizon for all of them.

A watcher is a cursor into its type's log, not a queue: the writer only appends and wakes, so a slow watcher costs the writer
nothing and holds no memory. When compaction passes a cursor, the watcher gets Expired, as with etcd. A queue per watcher was
rejected because it either grows without bound or makes the writer wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Literal

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store.entry import Entry

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(slots=True)
class Change:
    """What happened at `entry.rv`; `previous` is the version it replaced. For DELETED `entry` is the last state."""

    type: ChangeType
    entry: Entry
    previous: Entry | None
    _line: bytes | None = None

    @property
    def line(self) -> bytes:
        """The watch event as it goes over the wire, encoded once for all watchers."""
        if self._line is None:
            self._line = b'{"type":"%s","object":%s}\n' % (self.type.encode(), self.entry.raw)
        return self._line


class TypeLog:
    """Changes of one type in order; `base` is the absolute index of the first one kept."""

    __slots__ = ("_changes", "base", "waiters")

    def __init__(self) -> None:
        self._changes: deque[Change] = deque()
        self.base = 0
        self.waiters: set[asyncio.Future[None]] = set()

    @property
    def end(self) -> int:
        return self.base + len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self.wake()

    def wake(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters.clear()

    def drop_oldest(self) -> None:
        self._changes.popleft()
        self.base += 1

    def newest_first(self) -> reversed[Change]:
        return reversed(self._changes)

    def after(self, index: int) -> list[Change]:
        """The changes from absolute `index` on. Reads from the tail: a live watcher is never far behind."""
        count = self.end - index
        if count <= 0:
            return []
        if count == len(self._changes):
            return list(self._changes)
        tail = []
        for change in reversed(self._changes):
            tail.append(change)
            if len(tail) == count:
                break
        tail.reverse()
        return tail


class History:
    """All logs and the horizon: the version up to and including which changes are forgotten."""

    def __init__(self, limit: int, horizon: int = 0) -> None:
        self.limit = limit
        self.horizon = horizon
        self._logs: dict[str, TypeLog] = {}
        self._order: deque[tuple[int, TypeLog]] = deque()

    def log(self, group_resource: str) -> TypeLog:
        log = self._logs.get(group_resource)
        if log is None:
            log = self._logs[group_resource] = TypeLog()
        return log

    def append(self, group_resource: str, change: Change) -> None:
        log = self.log(group_resource)
        log.append(change)
        self._order.append((change.entry.rv, log))
        while len(self._order) > self.limit:
            self._compact_one()

    def compact(self, rv: int) -> None:
        """Forget everything up to and including `rv`."""
        while self._order and self._order[0][0] <= rv:
            self._compact_one()
        self.horizon = max(self.horizon, rv)
        for log in self._logs.values():
            log.wake()

    def _compact_one(self) -> None:
        rv, log = self._order.popleft()
        log.drop_oldest()
        self.horizon = rv

    def check(self, since: int) -> None:
        if since < self.horizon:
            raise ApiError("Expired", f"too old resource version: {since} ({self.horizon})")

    def cursor(self, group_resource: str, since: int) -> Cursor:
        """A cursor that yields what happened to the type after version `since`. Raises ApiError Expired."""
        self.check(since)
        log = self.log(group_resource)
        index = log.end
        for change in log.newest_first():
            if change.entry.rv <= since:
                break
            index -= 1
        return Cursor(log, index, self)


class Cursor:
    """A watcher's place in a log. `take` never blocks; `wait` returns when there may be more."""

    __slots__ = ("_history", "_index", "_log")

    def __init__(self, log: TypeLog, index: int, history: History) -> None:
        self._log = log
        self._index = index
        self._history = history

    @property
    def idle(self) -> bool:
        """Nothing is waiting."""
        return self._index == self._log.end

    def take(self) -> list[Change]:
        """The changes since the last call. Raises ApiError Expired when some of them are already forgotten."""
        if self._index < self._log.base:
            raise ApiError("Expired", f"too old resource version: watch fell behind ({self._history.horizon})")
        changes = self._log.after(self._index)
        self._index = self._log.end
        return changes

    async def wait(self) -> None:
        if self._index != self._log.end or self._index < self._log.base:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._log.waiters.add(waiter)
        try:
            await waiter
        finally:
            self._log.waiters.discard(waiter)
