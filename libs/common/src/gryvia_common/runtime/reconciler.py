"""One controller at work: from changed keys to carried-out plans.

The loop around a pass is the same for every kind: look the object up in the cache, parse it, put its world together, ask
decide, carry the plan out, and say when to look again. A pass that changed something is followed by another at once; an
object that goes round in a circle without any news (settling.py) is a bug of its decide function and is slowed down like a
failure, so that it can never write in a hot loop. What an error means is decided here once: Conflict reads the object again,
Gone forgets it, Transient and everything unexpected backs off.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import structlog

from gryvia_common.clock import Clock
from gryvia_common.errors import Conflict, Gone, KnownOutage, Terminal, Transient
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, Key, uid_of
from gryvia_common.kube.resources import Resource
from gryvia_common.runtime.actions import Actions
from gryvia_common.runtime.apiserver import ApiServer
from gryvia_common.runtime.cache import Change, ObjectCache, ObjectId
from gryvia_common.runtime.controller import Controller, Ref, Selection
from gryvia_common.runtime.executor import Executor, Memory
from gryvia_common.runtime.logs import PASS
from gryvia_common.runtime.metrics import ControllerMetrics
from gryvia_common.runtime.parsing import parse_object, status_keys
from gryvia_common.runtime.plan import Plan
from gryvia_common.runtime.queue import Priority, WorkQueue
from gryvia_common.runtime.settling import Settling
from gryvia_common.runtime.world import FixedWorld, Object

NOTABLE = (3, 10, 100)
AnyController = Controller[Any, Any]


@dataclass(slots=True)
class _Life:
    """What is known of one object between its passes."""

    uid: str
    memory: Memory
    refs: frozenset[Ref | Selection] = frozenset()
    settling: Settling = field(default_factory=Settling)


class Reconciler:
    """Works on the keys of one controller that this replica holds."""

    def __init__(
        self,
        controller: AnyController,
        *,
        kube: Kube,
        api: ApiServer,
        cache: ObjectCache,
        executor: Executor,
        clock: Clock,
        metrics: ControllerMetrics,
        holds: Callable[[Key], bool],
        thread: ThreadPoolExecutor,
        spread: Callable[[Change | None, ObjectId], None],
    ) -> None:
        self.controller = controller
        self.queue: WorkQueue[Key] = WorkQueue()
        self._kube = kube
        self._api = api
        self._cache = cache
        self._executor = executor
        self._clock = clock
        self._metrics = metrics
        self._holds = holds
        self._thread = thread
        self._spread = spread
        self._lives: dict[Key, _Life] = {}
        self._referring: dict[Ref | Selection, set[Key]] = {}
        self._actions: Actions[Key] = Actions(kube, api, clock, controller.actions, self.queue.add)
        api.back.append(self.queue.retry_now)
        self._status_keys = status_keys(controller.kind)
        self._idle = asyncio.Event()
        self._log = structlog.get_logger(controller.kind.name)

    def changed(self, change: Change, priority: Priority, *, by: ObjectId | None = None) -> None:
        """An object of the cache is new, different or gone: look again at whom it concerns. `by`: whose pass in this process
        changed it; that one goes on by itself."""
        for key in self._concerned(change):
            if (self.controller.kind.plural, key) != by:
                self._news(key, priority, own=by is not None)

    def _concerned(self, change: Change) -> Iterator[Key]:
        plural, key = change.object
        kind = self.controller.kind
        if plural == kind.plural:
            yield key
        elif change.owner is not None and change.owner[0] == kind.plural:
            yield Key(change.owner[1], change.owner[2])
        named = {Ref(one, key.namespace, key.name) for one in self.controller.ref_resources if one.plural == plural}
        for ref in named | change.selections:
            yield from self._referring.get(ref, ())

    def enqueue_held(self) -> None:
        """Look at every object of ours: after a replay, or when partitions were gained."""
        for key in self._cache.keys(self.controller.kind.plural):
            self._news(key, Priority.REPLAY)

    def give_up(self, key: Key) -> None:
        """The object is gone or another replica's now."""
        self.queue.remove(key)
        self._actions.forget(key)
        life = self._lives.pop(key, None)
        if life is not None:
            self._refer(key, life, frozenset())

    async def finish(self, lost: Callable[[Key], bool], *, within: float) -> None:
        """Wait (at most `within` seconds) until no pass of these keys is under way, then forget them."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while any(lost(key) for key in self.queue.running()):
                    await self._idle.wait()
                    self._idle.clear()
        for key in [key for key in self._lives if lost(key)]:
            self.give_up(key)

    async def work(self) -> None:
        """One worker; several may run. Ends only by cancellation."""
        while True:
            key, waited = await self.queue.take()
            await self._api.answers()
            started = time.perf_counter()
            result = "error"
            try:
                result = await self._guarded_pass(key)
            finally:
                self.queue.done(key)
                self._idle.set()
                self._metrics.passed(result, seconds=time.perf_counter() - started, waited=waited)
            # A pass that changes nothing waits for nothing: without this, ten thousand of them at a start would be one turn
            # of the loop, in which no heartbeat goes out and no live change is heard of.
            await asyncio.sleep(0)

    async def close(self) -> None:
        self.queue.close()
        await self._actions.close()

    def _news(self, key: Key, priority: Priority, *, own: bool = False) -> None:
        """`own`: of the service's own making, so that two objects which keep changing each other are slowed down, too."""
        if not self._holds(key):
            return
        life = self._lives.get(key)
        if life is not None and not own:
            life.settling.rest()
        self.queue.add(key, priority=priority)

    async def _guarded_pass(self, key: Key) -> str:
        PASS.set((str(key), f"{random.getrandbits(32):08x}"))
        try:
            return await self._pass(key)
        except Conflict:
            return await self._read_again(key)
        except Gone:
            return await self._read_again(key)
        except Transient as error:
            self._retry(key, error)
        except Terminal as error:
            self.queue.retry(key, at_least=5.0)
            self._metrics.terminal_errors.inc()
            self._log.error("pass refused by the API server", error=str(error), reason=error.reason)
        except Exception:  # noqa: BLE001 - The loop guard: one broken object must not stop the others.
            self.queue.retry(key, at_least=1.0)
            self._metrics.panics.inc()
            self._log.exception("pass crashed")
        return "error"

    def _retry(self, key: Key, error: Transient) -> None:
        """Said when it has failed a few times, and seldom then; an outage of API server or bus is said once, elsewhere."""
        delay = self.queue.retry(key, at_least=error.retry_after or 0.0)
        failures = self.queue.failures(key)
        if failures in NOTABLE and not self._api.away and not isinstance(error, KnownOutage):
            self._log.warning("pass fails, will be retried", error=str(error), failures=failures, delay=round(delay, 3))

    async def _pass(self, key: Key) -> str:
        kind = self.controller.kind
        raw = self._cache.get(kind.plural, key)
        if raw is None or not self._holds(key):
            self.give_up(key)
            return "success"
        life = self._life(key, uid_of(raw))
        plan, world = await self._plan(key, life, raw)
        if not self._holds(key):
            return "success"
        changed = await self._executor.carry_out(kind.resource, raw, world, plan, life.memory, self._status_keys)
        self.queue.forget(key)
        due = self._actions.want(key, raw, plan.actions)
        if changed:
            wait = life.settling.changed(plan.status.wire() if plan.status is not None else None)
            if wait:
                delay = self.queue.retry(key, at_least=wait)
                self._log.error("object does not settle", passes=life.settling.passes, delay=delay)
                return "error"
            self.queue.add(key)
            return "requeue"
        life.settling.rest()
        if plan.again_at is not None:
            due = min((plan.again_at - self._clock.now()).total_seconds(), due if due is not None else float("inf"))
        if due is None:
            return "success"
        self.queue.add(key, after=max(due, 0.001))
        return "requeue_after"

    async def _plan(self, key: Key, life: _Life, raw: Json) -> tuple[Plan, FixedWorld]:
        now = self._clock.now()
        try:
            obj = parse_object(self.controller.kind, raw)
        except Terminal as error:
            return self.controller.invalid(raw, str(error), now), FixedWorld()
        refs = frozenset(self.controller.refs(obj, self._look_up))
        self._refer(key, life, refs)
        world = self._world(key, life, obj, refs)
        if not self.controller.offload:
            return self.controller.decide(obj, world, now), world
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        plan = await loop.run_in_executor(self._thread, context.run, self.controller.decide, obj, world, now)
        return plan, world

    def _look_up(self, resource: Resource, namespace: str, name: str) -> Json | None:
        return self._cache.get(resource.plural, Key(namespace, name))

    def _world(self, key: Key, life: _Life, obj: Object[Any, Any], refs: frozenset[Ref | Selection]) -> FixedWorld:
        owner = (self.controller.kind.plural, obj.namespace, obj.name)
        found = {
            (ref.resource, ref.namespace, ref.name): other
            for ref in refs
            if isinstance(ref, Ref) and (other := self._look_up(ref.resource, ref.namespace, ref.name)) is not None
        }
        return FixedWorld(
            owned={
                resource: self._cache.children(owner, obj.uid, resource.plural) for resource in self.controller.children
            },
            others=found,
            selected={(ref.index, ref.key): self._cache.select(ref) for ref in refs if isinstance(ref, Selection)},
            observations=self._actions.observations(key),
            refusals=life.memory.known_refusals(),
        )

    async def _read_again(self, key: Key) -> str:
        """Somebody was faster, or the object is gone: take what the API server has now and decide anew."""
        kind = self.controller.kind
        known = self._cache.uid(kind.plural, key)
        try:
            live = await self._kube.get(kind.resource, key.namespace, key.name)
            self._spread(self._cache.put(kind.plural, live), (kind.plural, key))
        except Gone:
            if known is not None:
                self._spread(self._cache.remove(kind.plural, key, known, 0), (kind.plural, key))
            self.give_up(key)
            return "success"
        except Transient as error:
            self._retry(key, error)
            return "error"
        except Terminal as error:
            self._log.error("could not read the object again", error=str(error), reason=error.reason)
        self.queue.retry(key)
        return "requeue"

    def _life(self, key: Key, uid: str) -> _Life:
        life = self._lives.get(key)
        if life is not None and life.uid != uid:
            self._actions.forget(key)
            self._refer(key, life, frozenset())
            life = None
        if life is None:
            life = self._lives[key] = _Life(uid, Memory((self.controller.kind.plural, key)))
        return life

    def _refer(self, key: Key, life: _Life, refs: frozenset[Ref | Selection]) -> None:
        for ref in life.refs - refs:
            referring = self._referring.get(ref, set())
            referring.discard(key)
            if not referring:
                self._referring.pop(ref, None)
        for ref in refs - life.refs:
            self._referring.setdefault(ref, set()).add(key)
        life.refs = refs
