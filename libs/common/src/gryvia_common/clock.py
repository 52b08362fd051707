"""The one source of time, injected, so that every test of time runs in virtual time.

Invariant: no other module of the platform asks the operating system what time it is. Wall time (`now`) is for what is
written into objects; `monotonic` is for deadlines, so that a clock that jumps never ends a lease or starts a retry storm.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time in UTC, monotonic seconds, and sleep."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
