"""Virtual time: an event loop whose clock jumps to the next timer instead of waiting for it."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Never blocks: the time it would have waited has passed."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout:
            self.passed += timeout
        return ready


class WarpLoop(asyncio.SelectorEventLoop):
    """Only for work that waits for timers and for itself: no sockets, no threads."""

    def __init__(self) -> None:
        self._warp = _Selector()
        super().__init__(self._warp)

    def time(self) -> float:
        return self._warp.passed


class WarpClock:
    """The Clock of the running WarpLoop."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_warped(work: Coroutine[object, object, T]) -> T:
    with asyncio.Runner(loop_factory=WarpLoop) as runner:
        return runner.run(work)
