"""A connection to the platform's bus that fails within seconds: a person waits for it, where a service would wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gryvia_common.bus.connection import Bus
from gryvia_common.bus.settings import BusSettings
from gryvia_common.clock import SystemClock
from gryvia_common.errors import Terminal

ANSWER_SECONDS = 5.0


@asynccontextmanager
async def connected_bus(settings: BusSettings, name: str) -> AsyncIterator[Bus]:
    """Terminal when nobody answers, or refuses the credentials."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            bus = await Bus.connect(settings, name=name, clock=SystemClock())
    except TimeoutError as error:
        raise Terminal(
            f"NATS at {', '.join(settings.addresses)} does not answer within {ANSWER_SECONDS:.0f} s, or refuses the credentials; "
            "is it up, and is GRYVIA_NATS_URL right?",
            reason="NoBus",
        ) from error
    try:
        yield bus
    finally:
        await bus.close()
