"""The bus as a service sees it: connect, publish, emit, and read back what is stored.

Invariant: `publish` always says what is known of the outcome. After a lost connection that is "unknown": the message
may be stored. Sending it again with the same id and the same expected sequence is always right, because a conflict is
answered by reading the subject back: found under our own id, it was stored the first time.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import orjson

from gryvia_common.bus.cloudevents import event_message
from gryvia_common.bus.events import DomainEvent
from gryvia_common.bus.jetstream import as_error, call, last_message
from gryvia_common.bus.link import Link, NoResponders
from gryvia_common.bus.objects import MESSAGE_ID_HEADER, OP_HEADER, StoredObject, stored_object
from gryvia_common.bus.pull import Delivery, read_to_end
from gryvia_common.bus.settings import BusSettings
from gryvia_common.bus.streams import (
    EVENTS,
    LEASE_SECONDS,
    OBJECTS,
    claims_config,
    ensure_stream,
    events_config,
    members_config,
    objects_config,
)
from gryvia_common.bus.subjects import SYNC_WILDCARD, event_subject
from gryvia_common.clock import Clock
from gryvia_common.errors import Conflict, Gone, KnownOutage, Transient

__all__ = ["Bus", "BusSettings", "Published"]

_RECREATIONS = 10
_EXPECTED_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"


@dataclass(frozen=True, slots=True)
class Published:
    """`sequence`: where the message is (stored, duplicate), or where the one that won is (conflict; 0 when the
    subject is empty); 0 when unknown. `current`: on a conflict about an object, what the stream holds instead."""

    outcome: Literal["stored", "duplicate", "conflict", "unknown"]
    sequence: int
    current: StoredObject | None = None


class Bus:
    """See the module's docstring. Made by `connect`; safe to share between tasks, hundreds of publishes may be in
    flight at once."""

    def __init__(self, link: Link, clock: Clock) -> None:
        self.link = link
        self.clock = clock

    @classmethod
    async def connect(cls, settings: BusSettings, *, name: str, clock: Clock) -> Bus:
        """Returns once connected, however long that takes; the log says why it does not come to it."""
        link = Link(settings, name)
        await link.open()
        return cls(link, clock)

    @property
    def connected(self) -> bool:
        return self.link.connected

    @property
    def max_payload(self) -> int:
        """The largest body the server takes, headers included."""
        return self.link.max_payload

    async def close(self) -> None:
        await self.link.close()

    async def ensure_streams(self, lease_seconds: float = LEASE_SECONDS) -> None:
        """Both streams and the buckets of the leases are there and as they must be. The bridge does this, nobody else: the
        others wait. Raises Terminal (StreamDrift) or Transient."""
        settings = self.link.settings
        wanted = (
            objects_config(settings),
            events_config(settings),
            members_config(settings, lease_seconds),
            claims_config(settings),
        )
        for config in wanted:
            await ensure_stream(self.link, config)

    async def recreate_objects(self) -> None:
        """An empty OBJECTS stream in place of the present one, for when the cluster behind it is another one. Every
        follower begins anew. Purged first: a file stream deleted and made again at once can come back with its
        messages."""
        await call(self.link, f"STREAM.PURGE.{OBJECTS}")
        await call(self.link, f"STREAM.DELETE.{OBJECTS}")
        for _ in range(_RECREATIONS):
            with contextlib.suppress(Transient):  # while the files of the old one are still being removed
                return await ensure_stream(self.link, objects_config(self.link.settings))
            await self.clock.sleep(0.1)
        return await ensure_stream(self.link, objects_config(self.link.settings))

    async def publish(
        self, subject: str, body: bytes, headers: Mapping[str, str], *, expected_sequence: int | None = None
    ) -> Published:
        """`expected_sequence`: the subject's last message must be this one, 0 for none. Raises Terminal when the
        server refuses the message as such, Transient when it is sure that nothing was stored (no stream, no leader,
        out of resources)."""
        sent = dict(headers)
        if expected_sequence is not None:
            sent[_EXPECTED_SEQUENCE] = str(expected_sequence)
        try:
            answer = await self.link.request(subject, body, sent)
        except NoResponders:
            raise
        except Transient:
            return Published("unknown", 0)
        reply = orjson.loads(answer.data)
        if "error" not in reply:
            return Published("duplicate" if reply.get("duplicate") else "stored", int(reply["seq"]))
        error = as_error(f"publish on {subject}", reply["error"])
        if isinstance(error, Conflict):
            return await self._read_back(subject, headers.get(MESSAGE_ID_HEADER))
        raise error

    async def emit(self, event: DomainEvent, *, source: str, at: datetime) -> None:
        """Raises KnownOutage when it is not sure that the event is stored (the lease suffers from the same, and says so);
        emitting it again is harmless."""
        headers, body = event_message(event, source=source, at=at)
        subject = event_subject(event.noun, event.verb, event.namespace, event.name)
        try:
            published = await self.publish(subject, body, headers)
        except Transient as error:
            raise KnownOutage(f"event {event.id}: {error}") from error
        if published.outcome == "unknown":
            raise KnownOutage(f"event {event.id} may not have reached NATS")

    async def stored_headers(self, subject_filter: str) -> AsyncIterator[StoredObject]:
        """What the OBJECTS stream holds under the filter, without bodies, in stream order. Raises Transient when the
        stream is missing or the connection is lost on the way: begin again."""
        async for delivery in read_to_end(self.link, OBJECTS, [subject_filter], headers_only=True):
            if OP_HEADER in delivery.headers:
                yield stored_object(delivery.subject, delivery.headers, delivery.sequence)

    async def sync_markers(self) -> frozenset[str]:
        """The sync subjects that are in the stream."""
        deliveries: list[Delivery] = [
            d async for d in read_to_end(self.link, OBJECTS, [SYNC_WILDCARD], headers_only=True)
        ]
        return frozenset(delivery.subject for delivery in deliveries)

    async def _read_back(self, subject: str, message_id: str | None) -> Published:
        stream = EVENTS if subject.startswith("gryvia.event.") else OBJECTS
        try:
            stored = await last_message(self.link, stream, subject)
        except Gone:
            return Published("conflict", 0)
        except Transient:
            return Published("unknown", 0)
        if message_id is not None and stored.headers.get(MESSAGE_ID_HEADER) == message_id:
            return Published("stored", stored.sequence)
        current = stored_object(subject, stored.headers, stored.sequence) if OP_HEADER in stored.headers else None
        return Published("conflict", stored.sequence, current)
