"""The work queue: which key to look at next.

A key is waiting, running, or running and dirty; it is never worked on twice at once. Adding a waiting key merges with it: the
better priority and the earlier time win, so any number of changes cost one pass. There are two priorities: a live change
overtakes the ten thousand keys of a start-up replay; within one priority it is first in, first out. A failed key comes back
after an exponential, jittered delay that a success forgets.

The design is controller-runtime's priority queue (kubernetes-sigs/controller-runtime, pkg/controller/priorityqueue). Rejected:
asyncio.PriorityQueue, which can neither merge a waiting key nor withhold a running one. All time is the event loop's own
(`call_later`), so a test that runs on virtual time sees hours of backoff in microseconds.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

FIRST_DELAY = 0.005
LAST_DELAY = 300.0


class Priority(IntEnum):
    """LIVE is somebody waiting for an answer; REPLAY is a start-up or a resync going through everything."""

    LIVE = 0
    REPLAY = 1


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """`ready` keys could run now, `scheduled` ones have a due time, `running` are being worked on."""

    ready: int
    scheduled: int
    running: int


@dataclass(slots=True)
class _Entry:
    priority: Priority
    added_at: float
    token: int


class WorkQueue(Generic[K]):
    """See the module's docstring. Not thread-safe: everything happens on one event loop."""

    def __init__(self, *, seed: int | None = None) -> None:
        self._lanes: dict[Priority, deque[tuple[K, int]]] = {priority: deque() for priority in Priority}
        self._waiting: dict[K, _Entry] = {}
        self._running: dict[K, float] = {}
        self._dirty: dict[K, Priority] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._takers: deque[asyncio.Future[None]] = deque()
        self._tokens = 0
        self._random = random.Random(seed)
        self.adds = 0
        self.retries = 0

    def add(self, key: K, *, priority: Priority = Priority.LIVE, after: float = 0.0) -> None:
        """Look at `key` now, or in `after` seconds; of several due times of one key the earliest counts."""
        if after > 0:
            self._schedule(key, after)
            return
        if key in self._running:
            self._dirty[key] = min(priority, self._dirty.get(key, priority))
            return
        waiting = self._waiting.get(key)
        if waiting is None:
            self.adds += 1
            self._enqueue(key, priority, self._now())
        elif priority < waiting.priority:
            # The old place in the slower lane goes stale: its token no longer matches and it is stepped over.
            self._enqueue(key, priority, waiting.added_at)

    async def take(self) -> tuple[K, float]:
        """The next key, now running, and how many seconds it waited. Each take needs one `done`."""
        while True:
            for lane in self._lanes.values():
                while lane:
                    key, token = lane.popleft()
                    entry = self._waiting.get(key)
                    if entry is None or entry.token != token:
                        continue
                    del self._waiting[key]
                    self._cancel_timer(key)
                    now = self._now()
                    self._running[key] = now
                    return key, now - entry.added_at
            taker = asyncio.get_running_loop().create_future()
            self._takers.append(taker)
            try:
                await taker
            except asyncio.CancelledError:
                # A wake-up this taker was given but cannot use belongs to the next one.
                if taker.done() and not taker.cancelled():
                    self._wake()
                raise

    def done(self, key: K) -> None:
        """The pass has ended. What was added to the key meanwhile makes it wait again."""
        self._running.pop(key, None)
        priority = self._dirty.pop(key, None)
        if priority is not None:
            self.add(key, priority=priority)

    def retry(self, key: K, *, at_least: float = 0.0) -> float:
        """The pass failed: schedule the key with the next backoff (5 ms doubling to 5 min, plus up to a quarter of jitter) and
        return the delay in seconds. `at_least`: what the other side asked for (Retry-After)."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.retries += 1
        delay = min(FIRST_DELAY * 2.0 ** min(failures, 30), LAST_DELAY)
        delay = max(delay * (1 + self._random.random() / 4), at_least)
        self._schedule(key, delay)
        return delay

    def retry_now(self) -> None:
        """What kept the keys from succeeding is over: none of them waits for its next try any longer."""
        for key in list(self._failures):
            if key in self._timers:
                self._cancel_timer(key)
                self.add(key)
        self._failures.clear()

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """The pass succeeded: the next failure starts at the first delay again."""
        self._failures.pop(key, None)

    def remove(self, key: K) -> None:
        """The key is nobody's business here any more: not waiting, not due, no failures. A running pass goes on."""
        self._waiting.pop(key, None)
        self._dirty.pop(key, None)
        self._cancel_timer(key)
        self._failures.pop(key, None)

    def is_running(self, key: K) -> bool:
        return key in self._running

    def running(self) -> dict[K, float]:
        """The keys being worked on, each with the seconds since its pass began."""
        now = self._now()
        return {key: now - began for key, began in self._running.items()}

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(len(self._waiting), len(self._timers), len(self._running))

    def close(self) -> None:
        """Disarm every timer; nothing becomes due any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _enqueue(self, key: K, priority: Priority, added_at: float) -> None:
        self._tokens += 1
        self._waiting[key] = _Entry(priority, added_at, self._tokens)
        self._lanes[priority].append((key, self._tokens))
        self._wake()

    def _wake(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return

    def _schedule(self, key: K, after: float) -> None:
        loop = asyncio.get_running_loop()
        existing = self._timers.get(key)
        if existing is not None:
            if existing.when() <= loop.time() + after:
                return
            existing.cancel()
        self._timers[key] = loop.call_later(after, self._due, key)

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)

    def _cancel_timer(self, key: K) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
