"""The probes of one running container, as a group of tasks that lives as long as its process.

Until the startup probe has succeeded the container is neither started nor asked anything else; without a readiness probe a
started container is ready. A startup or liveness probe that crosses its failure threshold ends the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from gryvia_devcluster.node.context import Context
from gryvia_devcluster.node.probes import Answer, Target, attempt, watch_probe
from gryvia_devcluster.node.state import ContainerRecord
from gryvia_devcluster.types import Json


class Probes:
    """An async context manager around the process: probing begins on entry and has ended on exit."""

    def __init__(
        self,
        context: Context,
        spec: Json,
        record: ContainerRecord,
        target: Target,
        changed: Callable[[], None],
        report: Callable[[str], None],
        give_up: Callable[[str, Json], Coroutine[Any, Any, None]],
    ) -> None:
        """`report` gets the text of a failed attempt, `give_up(kind, probe)` ends the process."""
        self._context = context
        self._spec = spec
        self._record = record
        self._target = target
        self._changed = changed
        self._report = report
        self._end = give_up
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> None:
        startup = self._spec.get("startupProbe")
        if startup:
            self._spawn(self._watch("startup", startup, self._on_startup))
        else:
            self._on_startup(True, {})

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(asyncio.create_task(work))

    async def _watch(self, kind: str, probe: Json, on_verdict: Callable[[bool, Json], None]) -> None:
        async def ask(asked: Json) -> Answer:
            answer = await attempt(asked, self._target, self._context.spawner)
            if not answer.ok:
                self._report(f"{kind.capitalize()} probe failed: {answer.detail}")
            return answer

        def on_change(ok: bool, answer: Answer) -> None:
            on_verdict(ok, probe)

        await watch_probe(probe, ask, self._context.clock, on_change)

    def _give_up(self, kind: str, probe: Json) -> None:
        self._spawn(self._end(kind, probe))

    def _on_startup(self, ok: bool, probe: Json) -> None:
        if not ok:
            self._give_up("startup", probe)
            return
        if self._record.started:
            return
        self._record.started = True
        readiness, liveness = self._spec.get("readinessProbe"), self._spec.get("livenessProbe")
        self._record.ready = not readiness
        if readiness:
            self._spawn(self._watch("readiness", readiness, self._on_readiness))
        if liveness:
            self._spawn(self._watch("liveness", liveness, self._on_liveness))
        self._changed()

    def _on_readiness(self, ok: bool, probe: Json) -> None:
        if self._record.ready != ok:
            self._record.ready = ok
            self._changed()

    def _on_liveness(self, ok: bool, probe: Json) -> None:
        if not ok:
            self._give_up("liveness", probe)
