"""A service made of controllers: follow the bus, hold partitions, reconcile.

One snapshot-then-follow consumer fills one cache for all controllers of the service. No pass runs before the snapshot is
complete (every type's marker of the bridge has been seen), and none for a key whose partition this replica does not hold.
After a wipe of the bus the same applies again: what was known is unconfirmed, passes stop, the replay confirms or forgets,
passes go on. Every replica reads all partitions and works only on its own: a takeover needs no replay. (Rejected: reading only
one's own partitions. It saves memory with many replicas and makes each takeover wait for a snapshot.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import orjson
import structlog

from gryvia_common.bus.follow import ObjectMessage, follow
from gryvia_common.bus.membership import Membership
from gryvia_common.bus.subjects import partition_of
from gryvia_common.clock import Clock
from gryvia_common.errors import Gone, GryviaError
from gryvia_common.kube.children import owner_of
from gryvia_common.kube.objects import Json, Key
from gryvia_common.kube.resources import Resource
from gryvia_common.runtime.cache import Change, ObjectCache, ObjectId
from gryvia_common.runtime.controller import Controller
from gryvia_common.runtime.executor import Executor
from gryvia_common.runtime.metrics import ControllerMetrics, QueueCollector, gauge
from gryvia_common.runtime.process import Connected, connect
from gryvia_common.runtime.queue import Priority
from gryvia_common.runtime.reconciler import Reconciler
from gryvia_common.runtime.recorder import Recorder
from gryvia_common.runtime.settings import ProcessSettings


@dataclass(frozen=True, slots=True)
class Service:
    """A name and the controllers that run under it."""

    name: str
    controllers: Sequence[Controller[Any, Any]]

    @property
    def resources(self) -> dict[str, Resource]:
        """Every type the service reads, by plural."""
        found: dict[str, Resource] = {}
        for controller in self.controllers:
            for resource in (controller.kind.resource, *controller.children, *controller.ref_resources):
                found[resource.plural] = resource
        return found


async def run_service(service: Service, settings: ProcessSettings, clock: Clock) -> None:
    """Runs until cancelled; passes under way get `shutdown_seconds` to end, then the partitions are handed over."""
    async with connect(service.name, settings, clock) as connected:
        with ThreadPoolExecutor(1, thread_name_prefix=service.name) as thread:
            membership = Membership(
                connected.bus, service.name, settings.replica, clock=clock, ttl=settings.lease_seconds
            )
            connected.health.checks["lease"] = lambda: (
                "" if membership.is_valid else "NATS does not confirm this replica's lease, so it works on nothing"
            )
            shell = Shell(service, settings, connected, thread, lambda: membership.held)
            await shell.run(membership)


class Shell:
    """The FollowHandler of one service, and what holds its parts together. `held`: the partitions to work on."""

    def __init__(
        self,
        service: Service,
        settings: ProcessSettings,
        connected: Connected,
        thread: ThreadPoolExecutor,
        held: Callable[[], frozenset[int]],
    ) -> None:
        self._service = service
        self._settings = settings
        self._kube, self._bus, self._clock = connected.kube, connected.bus, connected.clock
        self._resources = service.resources
        self._cache = ObjectCache([index for controller in service.controllers for index in controller.indexes])
        self._synced = False
        self._held = held
        self._log = structlog.get_logger(service.name)
        self._reads: set[asyncio.Task[None]] = set()
        manager = f"gryvia-{service.name}"
        recorder = Recorder(self._kube, manager, self._clock)
        executor = Executor(
            self._kube, self._bus, self._cache, recorder, self._clock, manager=manager, spread=self._spread
        )
        self._reconcilers = [
            Reconciler(
                controller,
                kube=self._kube,
                api=connected.api,
                cache=self._cache,
                executor=executor,
                clock=self._clock,
                metrics=ControllerMetrics(connected.registry, controller.kind.name.lower(), connected.metrics),
                holds=self._holds,
                thread=thread,
                spread=self._spread,
            )
            for controller in service.controllers
        ]
        self._kinds = frozenset(controller.kind.plural for controller in service.controllers)
        self._referred = frozenset(
            resource.plural for controller in service.controllers for resource in controller.ref_resources
        )
        connected.health.checks["snapshot"] = lambda: (
            "" if self._synced else "the bus does not hold every type this service reads yet"
        )
        connected.registry.register(QueueCollector(self._queues))
        gauge(connected.registry, "gryvia_cached_objects", "Objects in the cache", lambda: float(len(self._cache)))
        gauge(
            connected.registry,
            "gryvia_held_partitions",
            "Partitions this replica works on",
            lambda: float(len(self._held())),
        )

    async def run(self, membership: Membership) -> None:
        workers = self.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(follow(self._bus, list(self._resources), self, clock=self._clock))
                group.create_task(membership.run(gained=self.gained, release=self.release))
                for worker in workers:
                    group.create_task(_watched(worker))
        finally:
            await self.stop(workers)

    def start(self) -> list[asyncio.Task[None]]:
        """The workers; they have nothing to do before the snapshot is complete and partitions are held."""
        return [
            asyncio.create_task(reconciler.work(), name=f"{self._service.name} worker {number}")
            for reconciler in self._reconcilers
            for number in range(self._settings.workers)
        ]

    async def stop(self, workers: Sequence[asyncio.Task[None]]) -> None:
        for task in (*workers, *self._reads):
            task.cancel()
        await asyncio.gather(*workers, *self._reads, return_exceptions=True)
        for reconciler in self._reconcilers:
            await reconciler.close()

    def reset(self) -> None:
        """FollowHandler: the stream is new to us."""
        if self._synced:
            self._log.warning("the bus was wiped, passes wait for its snapshot")
        self._synced = False
        self._cache.begin_replay()

    def received(self, message: ObjectMessage) -> None:
        """FollowHandler: one object's newest state."""
        key = Key(message.namespace, message.name)
        if message.op == "deleted":
            self._spread(self._cache.remove(message.plural, key, message.uid, message.version))
        elif message.body_omitted:
            task = asyncio.create_task(self._read(message.plural, key))
            self._reads.add(task)
            task.add_done_callback(self._reads.discard)
        else:
            obj: Json = orjson.loads(message.body)
            if self._concerns(message.plural, obj):
                self._spread(self._cache.put(message.plural, obj, message.body))

    def synced(self) -> None:
        """FollowHandler: the replay is complete."""
        for change in self._cache.end_replay():
            self._spread(change)
        self._synced = True
        self._log.info("snapshot complete", objects=len(self._cache))
        for reconciler in self._reconcilers:
            reconciler.enqueue_held()

    def _concerns(self, plural: str, obj: Json) -> bool:
        if plural in self._kinds or plural in self._referred:
            return True
        owner = owner_of(obj)
        return owner is not None and owner.plural in self._kinds

    def _spread(self, change: Change | None, by: ObjectId | None = None) -> None:
        if change is None:
            return
        for reconciler in self._reconcilers:
            reconciler.changed(change, Priority.LIVE, by=by)

    async def _read(self, plural: str, key: Key) -> None:
        """An object too large for the bus: its message was only a hint."""
        try:
            obj = await self._kube.get(self._resources[plural], key.namespace, key.name)
        except Gone:
            return
        except GryviaError as error:
            self._log.warning("an object too large for the bus could not be read", key=str(key), error=str(error))
            return
        if self._concerns(plural, obj):
            self._spread(self._cache.put(plural, obj))

    def _holds(self, key: Key) -> bool:
        return self._synced and partition_of(key.namespace, key.name) in self._held()

    def gained(self, partitions: frozenset[int]) -> None:
        if self._synced:
            for reconciler in self._reconcilers:
                reconciler.enqueue_held()

    async def release(self, partitions: frozenset[int]) -> None:
        """No new pass begins for these (`held` lacks them by now); wait for those under way, then forget their keys."""

        def lost(key: Key) -> bool:
            return partition_of(key.namespace, key.name) in partitions

        async with asyncio.TaskGroup() as group:
            for reconciler in self._reconcilers:
                group.create_task(reconciler.finish(lost, within=self._settings.shutdown_seconds))

    def _queues(self) -> dict[str, tuple[Any, int]]:
        return {r.controller.kind.name.lower(): (r.queue, self._settings.workers) for r in self._reconcilers}


async def _watched(worker: asyncio.Task[None]) -> None:
    """A worker that ends is a bug and ends the service, loudly. At shutdown the workers outlive the group: passes under way may
    end while the partitions are handed over."""
    await asyncio.shield(worker)
