"""How long to wait before the next attempt: 0.2 s, doubling to 10 s, each with jitter, and short again after a good
spell."""

from __future__ import annotations

import random

from gryvia_common.clock import Clock

_FIRST = 0.2
_LAST = 10.0


class Backoff:
    """Invariant: the waits grow only while attempts keep failing soon; jitter keeps many processes apart after a
    common fault."""

    def __init__(self, clock: Clock, *, first: float = _FIRST, last: float = _LAST) -> None:
        self._clock = clock
        self._first = first
        self._last = last
        self._next = first
        self._good_after: float | None = None
        self._failures = 0

    @property
    def is_notable(self) -> bool:
        """Whether this failure is one for the log: the fifth in a row, the fiftieth, …; the first ones are an outage
        like any."""
        return self._failures in (5, 50, 500, 5000)

    def reset_after(self, seconds: float) -> None:
        """An attempt begins; when it holds for so long, the next failure counts as the first again."""
        self._good_after = self._clock.monotonic() + seconds

    async def wait(self) -> None:
        if self._good_after is not None and self._clock.monotonic() >= self._good_after:
            self._next, self._failures = self._first, 0
        self._good_after = None
        self._failures += 1
        delay = self._next * random.uniform(0.5, 1.0)
        self._next = min(self._next * 2, self._last)
        await self._clock.sleep(delay)
