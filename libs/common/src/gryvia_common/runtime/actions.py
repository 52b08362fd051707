"""What needs I/O besides the API writes of a plan: actions run beside the passes, their answers are observations.

Invariant: of one object and action key at most one runs at a time, and an observation lives exactly as long as the object's
plans keep naming its key. A pass is never held up by an action; when one ends, its object gets another pass. An action lost in
a crash is simply asked for again by the next plan, so runners must be idempotent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog

from gryvia_common.clock import Clock
from gryvia_common.errors import GryviaError
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json
from gryvia_common.runtime.apiserver import ApiServer
from gryvia_common.runtime.controller import Runner
from gryvia_common.runtime.plan import Action
from gryvia_common.runtime.world import Observation

K = TypeVar("K", bound=Hashable)

TIMEOUT = 60.0
CONCURRENT = 32


@dataclass(frozen=True, slots=True)
class Context:
    """The ActionContext a runner gets."""

    kube: Kube
    clock: Clock
    raw: Json
    previous: object


@dataclass(slots=True)
class _Known:
    observations: dict[str, Observation] = field(default_factory=dict)
    started: dict[str, float] = field(default_factory=dict)
    running: dict[str, asyncio.Task[None]] = field(default_factory=dict)


class Actions(Generic[K]):
    """The actions of all objects of one controller. `ended(key)` is called when an object has a new observation."""

    def __init__(
        self, kube: Kube, api: ApiServer, clock: Clock, runners: Mapping[str, Runner], ended: Callable[[K], None]
    ) -> None:
        self._kube = kube
        self._api = api
        self._clock = clock
        self._runners = runners
        self._ended = ended
        self._known: dict[K, _Known] = {}
        self._slots = asyncio.Semaphore(CONCURRENT)
        self._log = structlog.get_logger("actions")

    def observations(self, key: K) -> dict[str, Observation]:
        known = self._known.get(key)
        return dict(known.observations) if known else {}

    def want(self, key: K, obj: Json, actions: Iterable[Action]) -> float | None:
        """Start what is due of `actions`; drop the observations that are no longer named. Seconds until the next is due."""
        wanted = {action.key: action for action in actions}
        known = self._known.get(key)
        if known is None:
            if not wanted:
                return None
            known = self._known[key] = _Known()
        for gone in known.observations.keys() - wanted.keys():
            del known.observations[gone]
        for gone in known.running.keys() - wanted.keys():
            known.running.pop(gone).cancel()
        known.started = {name: at for name, at in known.started.items() if name in wanted}
        waits = [wait for action in wanted.values() if (wait := self._due(key, known, obj, action)) is not None]
        if not wanted:
            del self._known[key]
        return min(waits, default=None)

    def forget(self, key: K) -> None:
        """The object is gone, or another replica's: end its actions."""
        known = self._known.pop(key, None)
        for task in known.running.values() if known else ():
            task.cancel()

    async def close(self) -> None:
        """End all actions and wait for them."""
        tasks = [task for known in self._known.values() for task in known.running.values()]
        self._known.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _due(self, key: K, known: _Known, obj: Json, action: Action) -> float | None:
        if action.key in known.running:
            return None
        now = self._clock.monotonic()
        started = known.started.get(action.key)
        if started is not None:
            if action.every is None:
                return None
            wait = started + action.every - now
            if wait > 0:
                return wait
        known.started[action.key] = now
        task = asyncio.create_task(self._run(key, known, obj, action), name=f"action {action.name} {key}")
        known.running[action.key] = task
        return None

    async def _answer(self, context: Context, action: Action) -> object:
        """What the runner found out. What it found out while the API server was lost is no answer: a log that could not be
        read then is not a log that cannot be read."""
        while True:
            await self._api.answers()
            before = self._api.failures
            async with self._slots, asyncio.timeout(TIMEOUT):
                try:
                    value = await self._runners[action.name](context, action.arguments)
                except GryviaError:
                    if self._api.failures == before or not self._api.away:
                        raise
                else:
                    if self._api.failures == before or not self._api.away:
                        return value

    async def _run(self, key: K, known: _Known, obj: Json, action: Action) -> None:
        previous = known.observations.get(action.key)
        context = Context(self._kube, self._clock, obj, previous.value if previous else None)
        try:
            value = await self._answer(context, action)
            observation = Observation(self._clock.now(), value)
        except (GryviaError, TimeoutError) as error:
            text = str(error) or f"no answer within {TIMEOUT:.0f} s"
            observation = Observation(self._clock.now(), context.previous, text)
        except Exception as error:  # noqa: BLE001 - A bug in a runner must not leave its object waiting for ever.
            self._log.exception("action failed", action=action.name, key=str(key))
            observation = Observation(self._clock.now(), context.previous, f"{type(error).__name__}: {error}")
        if known.running.get(action.key) is asyncio.current_task():
            del known.running[action.key]
        if self._known.get(key) is known and action.key in known.started:
            known.observations[action.key] = observation
            self._ended(key)
