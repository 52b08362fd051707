"""Fixtures for everybody: a real NATS server, and a bus on it.

nats_server   one server a session, on a free port of 127.0.0.1
nats_url      its URL, with no stream, bucket or consumer left over from an earlier test
bus           a connected Bus on it, with both streams made, in memory
own_nats      a server of the test's own, for tests that kill or wipe it; not supervised
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import TypeVar

import nats
import pytest

from gryvia_cli.nats_server import NatsServer
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.clock import SystemClock

T = TypeVar("T")


class _Loop:
    """An event loop in a thread: the session's server must outlive each test's own loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nats-server-loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self._loop.close()


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """The session's server. Do not stop it: use `own_nats` for that."""
    loop = _Loop()
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    loop.run(server.start(supervise=False))
    try:
        yield server
    finally:
        loop.run(server.stop())
        loop.close()


@pytest.fixture
async def nats_url(nats_server: NatsServer) -> str:
    """The URL of an empty server: whatever an earlier test left is deleted."""
    client = await nats.connect(nats_server.url)
    manager = client.jsm()
    for stream in await manager.streams_info():
        # Purged first: a file stream deleted and made again at once can come back with its messages.
        await manager.purge_stream(str(stream.config.name))
        await manager.delete_stream(str(stream.config.name))
    await client.close()
    return nats_server.url


@pytest.fixture
async def bus(nats_url: str) -> AsyncIterator[Bus]:
    """A Bus with both streams (in memory), closed after the test."""
    connected = await Bus.connect(BusSettings(url=nats_url, storage="memory"), name="test", clock=SystemClock())
    await connected.ensure_streams()
    try:
        yield connected
    finally:
        await connected.close()


@pytest.fixture
async def own_nats(tmp_path: Path) -> AsyncIterator[NatsServer]:
    """A server that the test may kill, wipe and start again."""
    server = NatsServer(tmp_path / "nats")
    await server.start(supervise=False)
    try:
        yield server
    finally:
        await server.stop()
