"""Reading events: what services and `gryvia events` use, and the model for an integration in another language.

Invariant: each event is handed on at most once (by id, among the last ten thousand) and none is skipped while the
stream keeps it: an interruption is taken up after the last one seen, a stream made anew is read from its beginning.
A stream that is missing is waited for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Never

import structlog

from gryvia_common.bus.backoff import Backoff
from gryvia_common.bus.cloudevents import ReceivedEvent, received_event
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.jetstream import stream_state
from gryvia_common.bus.pull import Delivery, Start, consume
from gryvia_common.bus.streams import EVENTS
from gryvia_common.bus.subjects import events_filter
from gryvia_common.errors import Gone, Terminal, Transient
from gryvia_common.tasks import end_task

__all__ = ["ReceivedEvent", "Since", "subscribe_events"]

Since = Literal["new", "all"] | datetime

_REMEMBERED = 10_000

log = structlog.get_logger(__name__)


async def subscribe_events(
    bus: Bus, filters: Sequence[tuple[str, str]] = (("*", "*"),), *, since: Since = "new"
) -> AsyncGenerator[ReceivedEvent, None]:
    """The events of each (noun, verb) of `filters`, `*` for any, for ever. `since`: only what comes from now on, all
    that the stream keeps, or what came since a time. Close the iterator (or cancel the task) to stop."""
    queue: asyncio.Queue[ReceivedEvent] = asyncio.Queue()
    reader = _EventReader(bus, [events_filter(noun, verb) for noun, verb in filters], since, queue)
    task = asyncio.create_task(reader.run_for_ever(), name="bus-events")
    try:
        while True:
            yield await queue.get()
    finally:
        await end_task(task)


@dataclass
class _EventReader:
    bus: Bus
    filters: list[str]
    since: Since
    queue: asyncio.Queue[ReceivedEvent]
    created: str = ""
    sequence: int = 0

    def __post_init__(self) -> None:
        self.seen: OrderedDict[str, None] = OrderedDict()

    async def run_for_ever(self) -> Never:
        backoff = Backoff(self.bus.clock)
        while True:
            try:
                await self._run(backoff)
            except (Transient, Gone, Terminal) as error:
                await backoff.wait()
                if backoff.is_notable and self.bus.connected:  # otherwise the connection has said so
                    log.warning("bus_events_fail", filters=self.filters, error=str(error))

    async def _run(self, backoff: Backoff) -> Never:
        state = await stream_state(self.bus.link, EVENTS)
        if not self.created:
            start = self._first_start()
            # From here on "new" means after this sequence, also when the first consumer dies before its first message.
            self.sequence = state.last_sequence if self.since == "new" else 0
        elif state.created != self.created or state.last_sequence < self.sequence:
            start, self.sequence = Start(), 0
        else:
            start = Start(sequence=self.sequence + 1)
        self.created = state.created
        backoff.reset_after(5.0)
        await consume(self.bus.link, EVENTS, self.filters, start, self._receive, lambda: None)

    def _first_start(self) -> Start:
        if self.since == "new":
            return Start(new=True)
        return Start() if self.since == "all" else Start(time=self.since)

    def _receive(self, delivery: Delivery) -> None:
        self.sequence = delivery.sequence
        try:
            event = received_event(delivery.subject, delivery.headers, delivery.body, delivery.sequence)
        except Terminal as error:
            log.warning("bus_foreign_message", subject=delivery.subject, sequence=delivery.sequence, error=str(error))
            return
        if event.id in self.seen:
            return
        self.seen[event.id] = None
        if len(self.seen) > _REMEMBERED:
            self.seen.popitem(last=False)
        self.queue.put_nowait(event)
