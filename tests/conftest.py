"""Fixtures for everybody: a real NATS server, and a bus on it.

nats_server   one server a session, on a free port of 127.0.0.1
nats_url      its URL, with a user whose account is the test's own and empty
bus           a connected Bus on it, with both streams made, in memory
own_nats      a server of the test's own, for tests that kill or wipe it; not supervised
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from gryvia_cli.nats_server import NatsServer
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.clock import SystemClock

T = TypeVar("T")

_ACCOUNTS = 500


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


def _accounts() -> str:
    lines = [
        f"T{number} {{ jetstream: enabled, users: [{{ user: user{number}, password: secret }}] }}"
        for number in range(_ACCOUNTS)
    ]
    return "accounts {\n" + "\n".join(lines) + "\n}"


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """The session's server. Do not stop it: use `own_nats` for that."""
    loop = _Loop()
    server = NatsServer(tmp_path_factory.mktemp("nats"), config=_accounts())
    loop.run(server.start(supervise=False))
    try:
        yield server
    finally:
        loop.run(server.stop())
        loop.close()


@pytest.fixture
def nats_url(nats_server: NatsServer, nats_accounts: Iterator[int]) -> str:
    """The URL of an account of the test's own, with nothing in it. Cleaning one account up would not do: a deleted file
    stream that is made anew at once can come back with its messages, or fail to come (seen in one of six tries)."""
    number = next(nats_accounts)
    return nats_server.url.replace("nats://", f"nats://user{number}:secret@")


@pytest.fixture(scope="session")
def nats_accounts() -> Iterator[int]:
    """The accounts nobody has used yet."""
    return iter(range(_ACCOUNTS))


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
