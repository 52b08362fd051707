"""An event loop whose time jumps to the next timer as soon as nothing else is to do.

Nothing in the simulation waits for a file or a socket, so the selector is never asked; that makes a step some ten times
cheaper than looptime's, and ten minutes of a platform's life a few milliseconds.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")
BEGIN = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class Stuck(Exception):
    """Nothing is to do any more, and nobody waits for a time."""


class _NoSelector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module's docstring. `time()` begins at 0."""

    def __init__(self) -> None:
        self._virtual = _NoSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


class VirtualClock:
    """The platform's Clock on the running loop. `jump`: how far the wall clock is off, as an operator may set it."""

    def __init__(self) -> None:
        self.jump = timedelta(0)

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.monotonic()) + self.jump

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(work: Coroutine[Any, Any, T]) -> T:
    """`work` on a virtual loop of its own."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
