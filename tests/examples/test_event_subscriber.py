"""The subscriber that users copy: it prints what happens, and goes on where it was after a restart."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

from gryvia_common.bus.connection import Bus
from gryvia_common.bus.events import TrialCompleted
from gryvia_common.bus.settings import BusSettings

SUBSCRIBER = Path(__file__).parents[2] / "examples" / "event-subscriber" / "subscriber.py"


@contextlib.asynccontextmanager
async def subscriber(url: str) -> AsyncIterator[asyncio.StreamReader]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, SUBSCRIBER, stdout=asyncio.subprocess.PIPE, env={**os.environ, "GRYVIA_NATS_URL": url}
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        await process.communicate()


async def complete(bus: Bus, number: int) -> None:
    name = f"search-trial-{number}"
    event = TrialCompleted(
        namespace="team",
        name=name,
        uid="u",
        generation=1,
        transition=name,
        tuner="search",
        number=number,
        metric_value=0.5,
    )
    await bus.emit(event, source="tuner", at=datetime.now(UTC))


async def test_it_prints_each_event_and_goes_on_where_it_was(bus: Bus, nats_as: Callable[[str], BusSettings]) -> None:
    async with asyncio.timeout(30):
        await complete(bus, 1)
        async with subscriber(nats_as("reader").url) as output:
            assert await output.readline() == b"u/trial/completed/search-trial-1 search-trial-1 0.5\n"
            await complete(bus, 2)
            assert await output.readline() == b"u/trial/completed/search-trial-2 search-trial-2 0.5\n"
            await until_acknowledged(bus)
        await complete(bus, 3)
        async with subscriber(nats_as("reader").url) as output:
            assert await output.readline() == b"u/trial/completed/search-trial-3 search-trial-3 0.5\n"


async def until_acknowledged(bus: Bus) -> None:
    manager = bus.link._client.jsm()
    while True:
        if not (await manager.consumer_info("EVENTS", "my-integration")).num_ack_pending:
            return
        await asyncio.sleep(0.01)


def test_it_is_short_enough_to_copy() -> None:
    code = [line for line in SUBSCRIBER.read_text().splitlines() if line.strip()]
    assert len(code) <= 25
