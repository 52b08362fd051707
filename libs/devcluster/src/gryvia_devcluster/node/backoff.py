"""The kubelet's back-off between restarts, and waiting that can be cut short. Pure but for the clock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from gryvia_devcluster.clock import Clock


@dataclass(slots=True)
class Backoff:
    """`base` doubling up to `limit`; forgotten after a run of `2 * limit` seconds. The first restart is immediate."""

    base: float = 10.0
    limit: float = 300.0
    failures: int = 0

    def next_delay(self, ran_for: float) -> float:
        if ran_for >= 2 * self.limit:
            self.failures = 0
        self.failures += 1
        if self.failures == 1:
            return 0.0
        return float(min(self.base * 2 ** min(self.failures - 2, 30), self.limit))


async def sleep_unless(event: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Sleep; True if `event` was set before the time was up."""
    if event.is_set() or seconds <= 0:
        return event.is_set()
    waits: set[asyncio.Task[object]] = {
        asyncio.ensure_future(event.wait()),
        asyncio.ensure_future(clock.sleep(seconds)),
    }
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return event.is_set()
