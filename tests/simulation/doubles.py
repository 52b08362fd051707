"""What a service's shell is connected to in the simulation: a Kube and a Bus of the real ones' interface, on one counter of
effects that a fault can name.

An effect is a write to the API server or the publication of an event. Each takes 2 ms there and 1 ms back, so that
passes, deliveries and other replicas can come in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Never

from memory_cluster import MemoryCluster

from gryvia_common.bus.events import DomainEvent
from gryvia_common.errors import Conflict, Gone, Transient
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import Resource
from gryvia_common.runtime.apiserver import ApiServer

THERE, BACK = 0.002, 0.001
HANG = 30.0
EffectFault = Literal["crash-before", "crash-after", "lost-answer", "not-done", "conflict", "hang", "hang-done"]
EFFECT_FAULTS: tuple[EffectFault, ...] = (
    "crash-before",
    "crash-after",
    "lost-answer",
    "not-done",
    "conflict",
    "hang",
    "hang-done",
)


@dataclass
class Effects:
    """`faults`: what happens at which effect, once. `log`: (who, what) of all that took place."""

    faults: dict[int, EffectFault] = field(default_factory=dict)
    count: int = 0
    log: list[tuple[float, str, str]] = field(default_factory=list)
    away: bool = False
    refused: int = 0
    reached: Callable[[float], object] = lambda now: None

    async def carry_out(self, who: Replica, what: str, do: Callable[[], Any]) -> Any:
        await asyncio.sleep(THERE)
        number = self.count
        self.count += 1
        fault = self.faults.pop(number, None)
        if fault == "crash-before":
            await who.die()
        if fault == "not-done":
            raise Transient(f"{what}: connection refused")
        if fault == "conflict":
            raise Transient(f"{what}: nobody knows") if what.startswith("emit") else Conflict(f"{what}: conflict")
        if fault == "hang":
            await asyncio.sleep(HANG)
            raise Transient(f"{what}: no answer in time")
        answer = do()
        self.log.append((asyncio.get_running_loop().time(), who.name, what))
        if fault == "crash-after":
            await who.die()
        if fault == "hang-done":
            await asyncio.sleep(HANG)
        if fault in ("lost-answer", "hang-done"):
            raise Transient(f"{what}: the connection was reset")
        await asyncio.sleep(BACK)
        return answer


@dataclass
class Replica:
    """Who acts: a process that can die in the middle of a request, and never hears of its answer."""

    name: str
    died: asyncio.Event = field(default_factory=asyncio.Event)

    async def die(self) -> Never:
        self.died.set()
        await asyncio.Event().wait()
        raise AssertionError("the dead do not go on")


@dataclass
class MemoryKube:
    """Kube, as far as the runtime and the services use it. While `effects.away` the API server does not answer."""

    api: ApiServer
    cluster: MemoryCluster
    effects: Effects
    who: Replica
    logs_of: Callable[[str], bytes]

    async def ping(self) -> None:
        await self._reach("ping")

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        await self._reach("get")
        return self.cluster.get(resource, namespace, name)

    async def create(self, resource: Resource, obj: Json, *, manager: str = "") -> Json:
        what = f"create {resource.kind} {metadata(obj)['name']}"
        return await self._write(what, lambda: self.cluster.create(resource, obj))

    async def apply(self, resource: Resource, obj: Json, *, manager: str, force: bool = True) -> Json:
        meta = metadata(obj)

        def do() -> Json:
            return self.cluster.change(resource, meta["namespace"], meta["name"], obj)

        return await self._write(f"apply {resource.kind} {meta['name']}", do)

    async def patch(
        self, resource: Resource, namespace: str, name: str, body: Json, *, subresource: str = "", manager: str = ""
    ) -> Json:
        def do() -> Json:
            return self.cluster.change(resource, namespace, name, body, only=subresource)

        return await self._write(f"patch {resource.kind} {name} {subresource}".rstrip(), do)

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        version: str = "",
        propagation: str = "Background",
    ) -> None:
        def do() -> None:
            self.cluster.delete(resource, namespace, name, uid=uid, version=version)

        await self._write(f"delete {resource.kind} {name}", do)

    async def logs(self, namespace: str, pod: str, **options: Any) -> bytes:
        await self._reach("logs")
        if ("pods", namespace, pod) not in self.cluster.objects:
            raise Gone(f"pod {pod} not found")
        return self.logs_of(pod)

    async def close(self) -> None:
        return

    async def _reach(self, verb: str) -> None:
        await asyncio.sleep(THERE)
        self.effects.refused += self.effects.away
        self.effects.reached(asyncio.get_running_loop().time())
        self.api.observe(verb, "", 0 if self.effects.away else 200, THERE)
        if self.effects.away:
            raise Transient(f"{verb}: connection refused")

    async def _write(self, what: str, do: Callable[[], Any]) -> Any:
        await self._reach("write")
        return await self.effects.carry_out(self.who, what, do)


@dataclass
class MemoryBus:
    """Bus, as far as a shell without NATS uses it. `stream`: the EVENTS stream, ids deduplicated; `sent`: every emit."""

    effects: Effects
    who: Replica
    stream: dict[str, DomainEvent]
    connected: bool = True

    async def emit(self, event: DomainEvent, *, source: str, at: datetime) -> None:
        await self.effects.carry_out(self.who, f"emit {event.id}", lambda: self.stream.setdefault(event.id, event))


class InlineExecutor(ThreadPoolExecutor):
    """Runs what is submitted at once: a thread would live in real time."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
