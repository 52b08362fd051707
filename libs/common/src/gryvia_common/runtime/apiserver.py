"""Whether the API server answers: found out once for a whole service, from the requests it makes anyway.

A service of ten thousand objects that meets a dead API server would otherwise try each of them again and again, say so each
time, and when the server is back sit out ten thousand backoffs of up to five minutes. Here the first request without an
answer stops the passes; one small request, every few seconds at most, asks whether the server is back; then everything that
failed goes on at once. An outage is logged when it has lasted and when it ends, and `/readyz` says so meanwhile. While all
is well nothing is asked.

Rejected: a failure count per object (an outage is not the object's fault), and asking from time to time without reason.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Never

import structlog

from gryvia_common.clock import Clock
from gryvia_common.errors import GryviaError, Transient

NO_ANSWER = frozenset({0, 502, 503, 504})
LASTED = 3.0
FIRST, LAST = 0.1, 5.0


class ApiServer:
    """`back` functions are called when an outage that lasted is over."""

    def __init__(self, clock: Clock) -> None:
        self.back: list[Callable[[], None]] = []
        self.failures = 0
        self._clock = clock
        self._answers = asyncio.Event()
        self._answers.set()
        self._away = asyncio.Event()
        self._since = 0.0
        self._failed_at = float("-inf")
        self._error = ""
        self._said = False
        self._log = structlog.get_logger("apiserver")

    @property
    def away(self) -> bool:
        return not self._answers.is_set()

    async def answers(self) -> None:
        """Returns at once, or when the server is back."""
        await self._answers.wait()

    def wrong(self) -> str:
        """For /readyz: empty when all is well, or when it is a moment's trouble."""
        lasted = self._clock.monotonic() - self._since
        if not self.away or lasted < LASTED:
            return ""
        return f"the API server has not answered for {lasted:.0f} s ({self._error})"

    def observe(self, verb: str, plural: str, code: int, seconds: float) -> None:
        """The Kube client's hook: after each request, code 0 without an answer."""
        if code not in NO_ANSWER:
            if code and verb != "ping":
                self._answered()
            return
        self.failures += 1
        now = self._clock.monotonic()
        if not self.away:
            # Back for a moment only is not back: the outage goes on.
            if now - self._failed_at > LAST:
                self._since = now - seconds
            self._answers.clear()
            self._away.set()
        self._failed_at = now
        self._error = f"HTTP {code}" if code else "no connection, or no answer in time"
        if now - self._since >= LASTED and not self._said:
            self._said = True
            self._log.warning("the API server does not answer, passes wait", error=self._error)

    async def ask(self, ping: Callable[[], Awaitable[None]]) -> Never:
        """While it is away, asks whether it is back. Runs until cancelled."""
        while True:
            await self._away.wait()
            pause = FIRST
            while self.away:
                await self._clock.sleep(pause * random.uniform(0.75, 1.0))
                pause = min(pause * 2, LAST)
                try:
                    await ping()
                except Transient:
                    continue
                except GryviaError:
                    pass  # whatever it says, it answers
                self._answered()

    def _answered(self) -> None:
        if not self.away:
            return
        lasted = self._clock.monotonic() - self._since
        self._away.clear()
        self._answers.set()
        if self._said:
            self._said = False
            self._log.warning("the API server answers again", seconds=round(lasted, 1))
            for call in self.back:
                call()
