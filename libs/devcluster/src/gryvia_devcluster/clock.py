"""Time as an argument: what controllers and the node read and wait on.

Everything in devcluster that waits (back-off, deadlines, probes, grace periods) does so through a Clock, so that a test
can live through ten minutes of back-off in a millisecond. VirtualClock moves only when told to, wakes sleepers strictly
in the order of their deadlines, and lets everything runnable run between two wake-ups; a loop with a patched time was
rejected because real processes and sockets of the node must keep working under it.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The time in UTC, timezone-aware."""
        ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0))


class VirtualClock:
    """A clock for tests. `advance` is the only thing that moves it."""

    _SETTLE_ROUNDS = 50

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._sequence = 0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sequence += 1
        heapq.heappush(self._sleepers, (self._elapsed + seconds, self._sequence, future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move forward, waking each sleeper at its own moment and letting what it does settle before the next."""
        end = self._elapsed + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            deadline, _, future = heapq.heappop(self._sleepers)
            if future.done():
                continue
            self._elapsed = max(self._elapsed, deadline)
            future.set_result(None)
            await self.settle()
        self._elapsed = end
        await self.settle()

    async def settle(self) -> None:
        """Let everything that is runnable now run, without moving time."""
        for _ in range(self._SETTLE_ROUNDS):
            await asyncio.sleep(0)


def stamp(moment: datetime) -> str:
    """metav1.Time on the wire: RFC 3339 in UTC with whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
