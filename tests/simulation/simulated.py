"""The platform in virtual time: the real shell, reconciler, executor, queue and actions of each service, on a dictionary for
an API server and a feed for a bus, with one fault (or a few) at a named place.

A feed carries every change of the cluster to one replica, as bridge and bus would: in order, whole, 5 ms late. A
delivery fault breaks exactly that once; what a real follower then does (read everything again) comes later, so that the
service works on what it has until then.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from doubles import Effects, InlineExecutor, MemoryBus, MemoryKube, Replica
from memory_cluster import Change, MemoryCluster
from node import Courses, Node
from prometheus_client import CollectorRegistry
from virtual_time import VirtualClock

from gryvia_common.bus.follow import ObjectMessage
from gryvia_common.kube.objects import Json
from gryvia_common.runtime.apiserver import ApiServer
from gryvia_common.runtime.health import Health
from gryvia_common.runtime.metrics import SharedMetrics
from gryvia_common.runtime.process import Connected
from gryvia_common.runtime.service import Service, Shell
from gryvia_common.runtime.settings import ProcessSettings

LATE = 0.005
RESTART = 0.05
HEAL = 30.0
LAG = 5.0
ALL = frozenset(range(16))
SETTINGS = ProcessSettings(replica="simulated", workers=4)

FeedFault = Literal["drop", "double", "swap", "late", "freeze", "wipe", "crash", "crash-stale", "move"]
FEED_FAULTS: tuple[FeedFault, ...] = (
    "drop",
    "double",
    "swap",
    "late",
    "freeze",
    "wipe",
    "crash",
    "crash-stale",
    "move",
)


@dataclass(eq=False)
class Process:
    """One replica of one service over all its lives. `faults`: what goes wrong at which delivery, once."""

    service: Callable[[], Service]
    sim: Simulation
    name: str
    faults: dict[int, FeedFault] = field(default_factory=dict)
    delivered: int = 0
    lives: int = 0
    shell: Shell | None = None
    held: frozenset[int] = ALL
    health: Health = field(default_factory=Health)
    _moving: asyncio.Task[None] | None = None
    _deaf: bool = False
    _frozen: bool = False
    _held_back: list[Change] = field(default_factory=list)
    _on_the_way: deque[tuple[Shell, Change]] = field(default_factory=deque)

    async def run(self) -> None:
        """Lives until cancelled; each death is followed by another life."""
        stale = 0
        while True:
            self.lives += 1
            who = Replica(f"{self.name}/{self.lives}")
            self._deaf, self._frozen, self._held_back, self.held = False, False, [], ALL
            self._died = who.died
            self._stale = 0
            self.shell, workers = self._begin(who)
            try:
                self._replay(stale)
                await who.died.wait()
            finally:
                # What the dead had begun goes no further; no clean end for it.
                shell, self.shell = self.shell, None
                await shell.stop(workers)
            stale = self._stale
            await asyncio.sleep(RESTART)

    def _begin(self, who: Replica) -> tuple[Shell, list[asyncio.Task[None]]]:
        sim = self.sim
        registry = CollectorRegistry()
        api = ApiServer(sim.clock)
        kube = MemoryKube(api, sim.cluster, sim.effects, who, sim.node.logs)
        health = Health({"api": api.wrong})
        connected = Connected(
            name=self.name,
            kube=kube,  # type: ignore[arg-type]
            bus=MemoryBus(sim.effects, who, sim.events),  # type: ignore[arg-type]
            clock=sim.clock,
            health=health,
            registry=registry,
            metrics=SharedMetrics(registry),
            api=api,
        )
        shell = Shell(self.service(), SETTINGS, connected, InlineExecutor(1), lambda: self.held)
        for reconciler in shell._reconcilers:
            reconciler.queue._random = random.Random(7)
        self.health = health
        return shell, [*shell.start(), asyncio.create_task(api.ask(kube.ping))]

    def _replay(self, stale: int = 0) -> None:
        """The whole stream, as it was `stale` changes ago; the rest comes LAG seconds later."""
        shell = self.shell
        if shell is None:
            return
        log = [change for change in self.sim.cluster.log if change.republished]
        past, rest = (log[:-stale], log[-stale:]) if stale else (log, [])
        last: dict[tuple[str, str, str], Change] = {}
        for change in past:
            last[change.plural, *change.key] = change
        shell.reset()
        for change in last.values():
            shell.received(message(change))
        shell.synced()
        self._deaf = False
        if rest:
            self._frozen, self._held_back = True, rest
            asyncio.get_running_loop().call_later(LAG, self._thaw, shell)

    def receive(self, change: Change) -> None:
        """A change of the cluster sets out on its way here."""
        if self.shell is not None and change.republished:
            self._on_the_way.append((self.shell, change))
            asyncio.get_running_loop().call_later(LATE, self._arrive)

    def _arrive(self) -> None:
        """In order, also of what set out at one moment: timers of one time have none."""
        shell, change = self._on_the_way.popleft()
        if shell is not self.shell or self._deaf:
            return
        number = self.delivered
        self.delivered += 1
        fault = self.faults.pop(number, None)
        loop = asyncio.get_running_loop()
        if fault == "drop":
            loop.call_later(HEAL, self._replay)
        elif fault == "double":
            self._give(shell, change)
            self._give(shell, change)
            loop.call_later(1.0, self._give, shell, change)
        elif fault == "swap":
            self._held_back.append(change)
            loop.call_later(2.0, self._thaw, shell)
        elif fault == "late":
            loop.call_later(10.0, self._give, shell, change)
        elif fault == "freeze":
            self._frozen = True
            self._held_back.append(change)
            loop.call_later(10.0, self._thaw, shell)
        elif fault == "wipe":
            self._deaf = True
            shell.reset()
            loop.call_later(LAG, self._replay)
        elif fault in ("crash", "crash-stale"):
            self._stale = 6 if fault == "crash-stale" else 0
            self._died.set()
        elif fault == "move":
            self._give(shell, change)
            self._moving = loop.create_task(self._move(shell))
        elif self._frozen:
            self._held_back.append(change)
        else:
            self._give(shell, change)
            self._thaw(shell)

    async def _move(self, shell: Shell) -> None:
        """Every partition is given up, and comes back three seconds later."""
        self.held = frozenset()
        await shell.release(ALL)
        await asyncio.sleep(3.0)
        self.held = ALL
        if shell is self.shell:
            shell.gained(ALL)

    def _thaw(self, shell: Shell) -> None:
        self._frozen = False
        waiting, self._held_back = self._held_back, []
        self._give_all(shell, waiting)

    def _give_all(self, shell: Shell, changes: Sequence[Change]) -> None:
        for change in changes:
            self._give(shell, change)

    def _give(self, shell: Shell, change: Change) -> None:
        if shell is self.shell:
            shell.received(message(change))


def message(change: Change) -> ObjectMessage:
    deleted = change.op == "deleted"
    return ObjectMessage(
        plural=change.plural,
        partition=0,
        namespace=change.key.namespace,
        name=change.key.name,
        uid=change.uid,
        version=change.version,
        op="deleted" if deleted else "applied",
        body=b"" if deleted else change.body,
        sequence=change.version,
    )


class Simulation:
    """One run. `processes` by name; `moves`: what people do, by the second."""

    def __init__(
        self, courses: Courses, services: Mapping[str, Callable[[], Service]], effects: Effects, *, replicas: int = 1
    ) -> None:
        self.clock = VirtualClock()
        self.cluster = MemoryCluster(self.clock.now)
        self.effects = effects
        self.events: dict[str, Any] = {}
        self.node = Node(self.cluster, courses)
        self.processes = {
            f"{name}-{number}" if number else name: Process(service, self, f"{name}-{number}" if number else name)
            for name, service in services.items()
            for number in range(replicas)
        }
        for process in self.processes.values():
            self.cluster.watchers.append(process.receive)

    async def live(self, moves: Sequence[tuple[float, Callable[[MemoryCluster], object]]], until: float) -> None:
        """To second `until`; then every process reads everything again, and lives on for ten minutes."""
        loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(process.run()) for process in self.processes.values()]
        for at, move in moves:
            loop.call_later(at, move, self.cluster)
        try:
            await asyncio.sleep(until)
            self.writes_until_settled = self.effects.count
            for process in self.processes.values():
                process._replay()
            await asyncio.sleep(600.0)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if not isinstance(error, asyncio.CancelledError):
                raise AssertionError(f"a process ended: {error!r}") from error  # type: ignore[arg-type]


def manifest(kind: Any, name: str, spec: Json, **meta: Any) -> Json:
    return {
        "apiVersion": kind.resource.api_version,
        "kind": kind.name,
        "metadata": {"name": name, "namespace": "team-a", **meta},
        "spec": spec,
    }
