"""The keyed queue all controllers share: each waiting key once, timers and retries through the clock.

There is one consumer and a sync never awaits, so a key cannot be worked on twice at once and no "in progress" set is
needed. Failures back off per key as client-go's rate limiter does (5 ms doubling, at most 1000 s).
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Hashable
from datetime import datetime
from typing import Generic, TypeVar

from gryvia_devcluster.clock import Clock

K = TypeVar("K", bound=Hashable)


class KeyedQueue(Generic[K]):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: dict[K, None] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._sequence = 0
        self._wake = asyncio.Event()
        self._rearm = asyncio.Event()

    def add(self, key: K) -> None:
        self._ready[key] = None
        self._wake.set()

    def add_at(self, key: K, when: datetime) -> None:
        """The earliest time asked for wins; a sync that is still too early asks again."""
        self.add_in(key, (when - self._clock.now()).total_seconds())

    def add_in(self, key: K, seconds: float) -> None:
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._sequence += 1
        heapq.heappush(self._timers, (due, self._sequence, key))
        if self._timers[0][2] == key:
            self._rearm.set()

    def failed(self, key: K) -> None:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_in(key, min(0.005 * 2**failures, 1000.0))

    def succeeded(self, key: K) -> None:
        self._failures.pop(key, None)

    async def get(self) -> K:
        while not self._ready:
            self._wake.clear()
            await self._wake.wait()
        key = next(iter(self._ready))
        del self._ready[key]
        return key

    async def run_timers(self) -> None:
        """Move due timers to the ready keys, until cancelled."""
        while True:
            self._rearm.clear()
            now = self._clock.monotonic()
            while self._timers and self._timers[0][0] <= now:
                due, _, key = heapq.heappop(self._timers)
                if self._due.get(key) == due:
                    del self._due[key]
                    self.add(key)
            await self._wait()

    async def _wait(self) -> None:
        rearm = asyncio.ensure_future(self._rearm.wait())
        waits: set[asyncio.Future[object]] = {rearm}  # type: ignore[arg-type]  # futures are invariant, wait() only reads
        if self._timers:
            pause = self._timers[0][0] - self._clock.monotonic()
            waits.add(asyncio.ensure_future(self._clock.sleep(pause)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
