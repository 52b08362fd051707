"""Following objects: first what is known, then every change, for ever and through every fault.

Invariant: after `reset` nothing that was known counts until `synced`; between the two come all objects of the
followed types. An interruption is taken up after the last message seen, which in a stream of last states misses
nothing but what cannot be asked for any more (a tombstone that has expired meanwhile). When that may have happened,
or when the stream is another one or has lost its end (a wipe, a crash that tore off unsynced messages), everything is
read again. A stream that is missing is waited for: the bridge makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Never, Protocol

import structlog

from gryvia_common.bus.backoff import Backoff
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.jetstream import message_at, stream_state
from gryvia_common.bus.objects import TOMBSTONE_TTL, ObjectMessage, object_message
from gryvia_common.bus.pull import Delivery, Start, consume
from gryvia_common.bus.streams import OBJECTS
from gryvia_common.bus.subjects import objects_filter, sync_subject
from gryvia_common.clock import Clock
from gryvia_common.errors import Gone, Terminal, Transient

__all__ = ["FollowHandler", "ObjectMessage", "follow"]

log = structlog.get_logger(__name__)


class FollowHandler(Protocol):
    """Called in the event loop, in order; must not block. What it raises ends `follow`."""

    def reset(self) -> None:
        """The stream is new to us (first start, or wiped): what was known is unconfirmed until `synced`."""

    def received(self, message: ObjectMessage) -> None:
        """An object's newest state. May repeat, and may be older than what is known (compare uid and version)."""

    def synced(self) -> None:
        """Everything that the cluster holds of the followed types has been received since `reset`."""


async def follow(bus: Bus, plurals: Sequence[str], handler: FollowHandler, *, clock: Clock) -> Never:
    """Runs until cancelled; heals by itself. Raises only what the handler raises."""
    follower = _Follower(bus, tuple(plurals), handler, clock)
    backoff = Backoff(clock)
    while True:
        try:
            await follower.run(backoff)
        except (Transient, Gone, Terminal) as error:
            await backoff.wait()
            if backoff.is_notable and bus.connected:  # otherwise the connection has said so
                log.warning("bus_follow_fails", plurals=plurals, error=str(error))


@dataclass(slots=True)
class _Cursor:
    """Where we are, and in which stream. `at`: when that was known to be the end of what there is (monotonic
    seconds)."""

    created: str
    sequence: int = 0
    stamp: int = 0
    at: float = 0.0


@dataclass
class _Follower:
    bus: Bus
    plurals: tuple[str, ...]
    handler: FollowHandler
    clock: Clock
    cursor: _Cursor | None = None
    missing_markers: set[str] = field(default_factory=set)
    replayed: bool = False
    is_synced: bool = False

    async def run(self, backoff: Backoff) -> Never:
        """One reading, from where the last one ended."""
        state = await stream_state(self.bus.link, OBJECTS)
        if self.cursor is None or not await self._continues(self.cursor, state.created, state.last_sequence):
            self._begin(state.created)
        cursor = self.cursor
        assert cursor is not None
        backoff.reset_after(5.0)
        start = Start(sequence=cursor.sequence + 1) if cursor.sequence else Start()
        filters = [objects_filter(plural) for plural in self.plurals] + [
            sync_subject(plural) for plural in self.plurals
        ]
        await consume(
            self.bus.link, OBJECTS, filters, start, partial(self._receive, cursor), partial(self._caught_up, cursor)
        )

    def _begin(self, created: str) -> None:
        self.cursor = _Cursor(created, at=self.clock.monotonic())
        self.missing_markers = {sync_subject(plural) for plural in self.plurals}
        self.replayed = self.is_synced = False
        self.handler.reset()

    async def _continues(self, cursor: _Cursor, created: str, last_sequence: int) -> bool:
        """Whether the stream is the one we know, with everything that we have seen still in it or replaced by
        something newer."""
        if created != cursor.created or last_sequence < cursor.sequence:
            return False
        if self.clock.monotonic() - cursor.at > TOMBSTONE_TTL.total_seconds() / 2:
            return False
        if cursor.sequence == 0:
            return True
        try:
            stored = await message_at(self.bus.link, OBJECTS, cursor.sequence)
        except Gone:
            return True  # replaced by a newer state, which is the normal case
        return nanoseconds(stored.time) == cursor.stamp

    def _receive(self, cursor: _Cursor, delivery: Delivery) -> None:
        if delivery.subject.startswith("gryvia.sync."):
            self.missing_markers.discard(delivery.subject)
        else:
            self._hand_on(delivery)
        cursor.sequence, cursor.stamp = delivery.sequence, delivery.stamp
        cursor.at = self.clock.monotonic()
        self._check_synced()

    def _hand_on(self, delivery: Delivery) -> None:
        try:
            message = object_message(delivery.subject, delivery.headers, delivery.body, delivery.sequence)
        except (Terminal, ValueError) as error:
            # A stranger's message must not stop the platform; the bridge alone may publish here.
            log.warning("bus_foreign_message", subject=delivery.subject, sequence=delivery.sequence, error=str(error))
            return
        self.handler.received(message)

    def _caught_up(self, cursor: _Cursor) -> None:
        self.replayed = True
        cursor.at = self.clock.monotonic()
        self._check_synced()

    def _check_synced(self) -> None:
        if self.replayed and not self.missing_markers and not self.is_synced:
            self.is_synced = True
            self.handler.synced()


def nanoseconds(rfc3339: str) -> int:
    """The server's time stamp as the number that deliveries carry; datetime would round it to microseconds."""
    whole, _, fraction = rfc3339.removesuffix("Z").partition(".")
    seconds = int(datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp())
    return seconds * 1_000_000_000 + int(fraction.ljust(9, "0") or 0)
