"""The bridge as a whole: one term of work under the lease, made of a reflector and a feed for each type and a guard of
the stream.

A stream that was filled from another cluster is deleted first: its versions and uids mean nothing here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Never

import structlog
from prometheus_client import CollectorRegistry

from gryvia_bridge.cluster import Cluster, ClusterChanged, WentBack
from gryvia_bridge.feed import Feed, read_stream
from gryvia_bridge.guard import StreamGuard
from gryvia_bridge.lease import Election, LeaseSettings
from gryvia_bridge.metrics import BridgeMetrics
from gryvia_bridge.publisher import Publisher
from gryvia_bridge.reflector import Reflector
from gryvia_bridge.state import BridgeState, TypeState
from gryvia_bridge.watched import WATCHED, Watched
from gryvia_common.bus.backoff import Backoff
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.jetstream import stream_state
from gryvia_common.bus.streams import LEASE_SECONDS, OBJECTS
from gryvia_common.bus.subjects import SYNC_WILDCARD
from gryvia_common.clock import Clock
from gryvia_common.errors import GryviaError
from gryvia_common.kube.client import Kube
from gryvia_common.runtime.apiserver import ApiServer
from gryvia_common.trouble import Trouble

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Bridge:
    """What a term needs. `state` and `metrics` are for who runs the process. `lease_seconds`: how long a heartbeat of a
    service's replica counts."""

    kube: Kube
    bus: Bus
    clock: Clock
    watched: Sequence[Watched] = WATCHED
    state: BridgeState = field(default_factory=BridgeState)
    metrics: BridgeMetrics = field(default_factory=lambda: BridgeMetrics(CollectorRegistry()))
    lease_seconds: float = LEASE_SECONDS
    api: ApiServer | None = None

    async def term(self) -> None:
        """Publishes until cancelled."""
        self.state.role = "active"
        self.state.types = {watched.plural: TypeState() for watched in self.watched}
        self.metrics.active.set(1)
        try:
            while True:
                try:
                    cluster, created = await self._prepared()
                    async with asyncio.TaskGroup() as tasks:
                        self._start(tasks, cluster, created)
                except* ClusterChanged as changed:
                    self.state.went_back |= any(isinstance(one, WentBack) for one in changed.exceptions)
                    log.warning("bridge_cluster_changed", error=str(changed.exceptions[0]))
        finally:
            self.state.role = "standby"
            self.metrics.active.set(0)

    def _start(self, tasks: asyncio.TaskGroup, cluster: Cluster, created: str) -> None:
        publisher = Publisher(self.bus, tasks, clock=self.clock, metrics=self.metrics)
        self.metrics.lag.set_function(publisher.lag)
        self.state.lag = publisher.lag
        feeds: dict[str, tuple[Feed, Reflector]] = {}
        for watched in self.watched:
            state = self.state.types[watched.plural]
            feed = Feed(self.bus, publisher, watched, state, cluster=cluster, clock=self.clock, metrics=self.metrics)
            reflector = Reflector(
                self.kube, watched, feed, state, clock=self.clock, relisted=self._count(watched), api=self.api
            )
            feeds[watched.plural] = (feed, reflector)
            self.metrics.objects.labels(watched.plural).set_function(feed.living)
            tasks.create_task(reflector.run(), name=f"reflector-{watched.plural}")
        guard = StreamGuard(self._ensure, self.bus, publisher, feeds, created=created, clock=self.clock)
        tasks.create_task(guard.look(), name="stream-look")
        tasks.create_task(guard.compare(), name="stream-compare")

    def _count(self, watched: Watched) -> Callable[[str], None]:
        return lambda reason: self.metrics.relists.labels(watched.plural, reason).inc()

    async def _prepared(self) -> tuple[Cluster, str]:
        """The cluster, and when the stream (now there, and of this cluster) was created."""
        trouble = Trouble()
        backoff = Backoff(self.clock)
        while True:
            try:
                cluster = await Cluster.identify(self.kube)
                await self._ensure()
                if self.state.went_back or await self._is_foreign(cluster.uid):
                    log.warning("bridge_stream_of_another_cluster", cluster=cluster.uid, went_back=self.state.went_back)
                    await self.bus.recreate_objects()
                    self.state.went_back = False
                return cluster, (await stream_state(self.bus.link, OBJECTS)).created
            except GryviaError as error:
                if trouble.is_news(error):
                    log.warning("bridge_cannot_start", error=trouble.last)
                await backoff.wait()

    async def _ensure(self) -> None:
        await self.bus.ensure_streams(self.lease_seconds)

    async def _is_foreign(self, cluster: str) -> bool:
        markers = await read_stream(self.bus, SYNC_WILDCARD)
        return bool(cluster) and any(marker.uid and marker.uid != cluster for marker in markers)


async def run_bridge(bridge: Bridge, *, lease: LeaseSettings | None, identity: str) -> Never:
    """Until cancelled; then the lease is released. Without a lease the bridge is active from the start."""
    if lease is not None:
        election = Election(bridge.kube, lease, identity=identity, clock=bridge.clock, api=bridge.api)
        await election.lead(bridge.term)
    await bridge.term()
    raise AssertionError("a term ends by cancellation only")
