"""One type from the reflector to the stream: reads the checkpoint, publishes the difference, then every change.

One path for start, crash, 410, lost lease and a wiped NATS. The marker `gryvia.sync.<plural>` is published when the
first complete difference is in this very stream, so that a service knows that what it replayed is everything.
"""

from __future__ import annotations

import structlog

from gryvia_bridge.checkpoint import Checkpoint, Comparison, checkpoint, same
from gryvia_bridge.cluster import Cluster
from gryvia_bridge.envelope import SOURCE, Envelope, envelope, with_body
from gryvia_bridge.metrics import BridgeMetrics
from gryvia_bridge.publisher import Publisher
from gryvia_bridge.state import TypeState
from gryvia_bridge.watched import Watched
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.objects import MESSAGE_ID_HEADER, Op, StoredObject, object_headers
from gryvia_common.bus.subjects import objects_filter, sync_subject
from gryvia_common.clock import Clock
from gryvia_common.errors import Transient
from gryvia_common.kube.objects import Json

log = structlog.get_logger(__name__)


class Feed:
    """The reflector's sink."""

    def __init__(
        self,
        bus: Bus,
        publisher: Publisher,
        watched: Watched,
        state: TypeState,
        *,
        cluster: Cluster,
        clock: Clock,
        metrics: BridgeMetrics,
    ) -> None:
        self._bus = bus
        self._publisher = publisher
        self._watched = watched
        self._state = state
        self._cluster = cluster
        self._clock = clock
        self._metrics = metrics
        self._lane = publisher.lane(watched.plural)
        self._stored = Checkpoint({}, ())
        self._comparison: Comparison | None = None

    async def floor(self) -> int:
        await self._cluster.confirm()
        await self._publisher.flush(self._watched.plural)
        self._stored = await self._read()
        self._lane.table = self._stored.table
        self._comparison = None
        return self._stored.newest

    async def page(self, objects: list[Json], version: int) -> None:
        if self._comparison is None:
            # The table goes on changing while we publish; the difference is against what it was.
            stored = Checkpoint(dict(self._stored.table), self._stored.strays)
            self._comparison = Comparison(self._watched.plural, stored, version)
        now = self._clock.monotonic()
        for obj in objects:
            change = envelope(self._watched.resource, obj, "applied", now)
            if self._comparison.wants(change):
                await self._offer(with_body(change, obj))

    async def listed(self, version: int) -> None:
        assert self._comparison is not None, "a list has at least one page"
        for change in self._comparison.vanished(self._clock.monotonic()):
            await self._offer(change)
        self._comparison = None
        await self._publisher.flush(self._watched.plural)
        await self._mark(version)
        if not self._state.synced:
            log.info("bridge_type_synced", plural=self._watched.plural, objects=self.living(), version=version)
        self._state.synced = True

    async def changed(self, event: str, obj: Json) -> None:
        op: Op = "deleted" if event == "DELETED" else "applied"
        self._metrics.events.labels(self._watched.plural).inc()
        change = envelope(self._watched.resource, obj, op, self._clock.monotonic())
        await self._offer(with_body(change, obj) if op == "applied" else change)

    async def _offer(self, change: Envelope) -> None:
        """Waits while the publisher is full, and with us the list or watch."""
        self._publisher.offer(change)
        if self._publisher.full:
            await self._publisher.room()

    async def is_intact(self) -> bool:
        """Whether the stream holds what was stored in it. Costs the API server nothing."""
        before = dict(self._lane.table)
        stored = await self._read()
        for key, entry in before.items():
            if entry.deleted and key not in stored.table and self._lane.table.get(key) is entry:
                del self._lane.table[key]  # the tombstone has run out
        return not stored.strays and same(stored.table, self._lane.table, before)

    def living(self) -> int:
        return sum(not entry.deleted for entry in self._lane.table.values())

    def messages(self) -> int:
        """How many messages the stream holds of this type at least: tombstones run out."""
        return self.living() + (1 if self._state.synced else 0)

    async def _read(self) -> Checkpoint:
        subjects = objects_filter(self._watched.plural)
        return checkpoint(await read_stream(self._bus, subjects))

    async def _mark(self, version: int) -> None:
        subject = sync_subject(self._watched.plural)
        if await read_stream(self._bus, subject):
            return
        headers = object_headers(self._cluster.uid, version, "applied") | {
            # Types are often synced at one version: without the subject in the id the second marker would be a duplicate.
            MESSAGE_ID_HEADER: f"{self._cluster.uid}/{version}/{subject}",
            "ce-source": SOURCE,
        }
        published = await self._bus.publish(subject, b"", headers, expected_sequence=0)
        if published.outcome in ("unknown", "duplicate"):
            raise Transient(f"{subject}: the marker may not be stored ({published.outcome})")


async def read_stream(bus: Bus, subject_filter: str) -> list[StoredObject]:
    """What the stream holds under the filter."""
    return [stored async for stored in bus.stored_headers(subject_filter)]
