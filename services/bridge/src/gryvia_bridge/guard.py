"""Notices when the stream is not what the bridge put into it, within seconds, and has the types compared anew.

Asked every two seconds and costs NATS a few small requests: are all streams there (what is missing is made anew), is OBJECTS
the same one (a wiped server has a new one), does it reach as far as our last acknowledged message (a server may lose those
in a power cut), does it hold at least as many messages as there are living objects. Every ten minutes the headers are read
and compared in full; a list of the API server is asked for only when they differ.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Never

import structlog

from gryvia_bridge.feed import Feed
from gryvia_bridge.publisher import Publisher
from gryvia_bridge.reflector import Reflector
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.jetstream import StreamState, stream_state
from gryvia_common.bus.streams import OBJECTS
from gryvia_common.clock import Clock
from gryvia_common.errors import GryviaError
from gryvia_common.trouble import Trouble

log = structlog.get_logger(__name__)

LOOK = 2.0
COMPARE = 600.0


class StreamGuard:
    """`ensure` makes whatever stream or bucket is missing. `created`: the stream the types are being published into."""

    def __init__(
        self,
        ensure: Callable[[], Awaitable[None]],
        bus: Bus,
        publisher: Publisher,
        feeds: Mapping[str, tuple[Feed, Reflector]],
        *,
        created: str,
        clock: Clock,
    ) -> None:
        self._ensure = ensure
        self._bus = bus
        self._publisher = publisher
        self._feeds = feeds
        self._created = created
        self._clock = clock

    async def look(self) -> Never:
        trouble = Trouble()
        while True:
            await self._clock.sleep(LOOK)
            expected = sum(feed.messages() for feed, _ in self._feeds.values())
            reached = max((lane.highest_sequence for lane in self._publisher.lanes.values()), default=0)
            try:
                state = await self._present()
            except GryviaError as error:
                if trouble.is_news(error):
                    log.warning("bridge_stream_not_seen", error=trouble.last)
                continue
            trouble.over()
            reason = self._wrong(state, expected, reached)
            if reason:
                self._heal(reason, state)

    async def compare(self) -> Never:
        while True:
            await self._clock.sleep(COMPARE)
            for plural, (feed, reflector) in self._feeds.items():
                try:
                    intact = await feed.is_intact()
                except GryviaError as error:
                    log.info("bridge_compare_failed", plural=plural, error=str(error))
                    continue
                if not intact:
                    log.warning("bridge_stream_differs", plural=plural)
                    reflector.relist("differs")

    async def _present(self) -> StreamState:
        await self._ensure()
        return await stream_state(self._bus.link, OBJECTS)

    def _wrong(self, state: StreamState, expected: int, reached: int) -> str:
        if state.created != self._created:
            return "wiped"
        if state.last_sequence < reached:
            return "rewound"
        return "emptied" if state.messages < expected else ""

    def _heal(self, reason: str, state: StreamState) -> None:
        log.warning("bridge_stream_lost_messages", reason=reason, created=state.created, messages=state.messages)
        self._created = state.created
        for lane in self._publisher.lanes.values():
            lane.highest_sequence = 0
        for _, reflector in self._feeds.values():
            reflector.relist(reason)
