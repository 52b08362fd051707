"""Fixtures for everybody: a real NATS server, and a bus on it.

nats_server   one server a session, on a free port of 127.0.0.1
nats_url      its URL, with a user who may do everything in an account that is the test's own and empty
nats_as       the settings of another user of that account: a service, the bridge, or the reader, with their permissions; a test
              that uses it fails when the server refused anything
bus           a connected Bus on it, with the streams made, in memory
bridge_bus    the same as the bridge
own_nats      a server of the test's own, for tests that kill or wipe it; not supervised
stored_events reads every event that a server keeps, once for each time that it is stored
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import structlog
from hypothesis import HealthCheck, settings

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.bus_users import users
from gryvia_common.bus.cloudevents import ReceivedEvent, received_event
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.bus.permissions import ADMIN, permissions_block, service_permissions
from gryvia_common.bus.pull import read_to_end
from gryvia_common.bus.settings import inbox_of
from gryvia_common.bus.streams import EVENTS
from gryvia_common.bus.subjects import events_filter
from gryvia_common.clock import SystemClock

T = TypeVar("T")

_ACCOUNTS = 500

# How fast this machine draws examples beside other work is no property of what is tested.
settings.register_profile("gryvia", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gryvia")


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
    """Each with all users of a platform and one service more, `<user>-<account>`."""
    granted = {user: permissions for user, permissions in users().items() if permissions is not None}
    granted["cards"] = service_permissions("cards", emits=())
    variables = [f"MAY_{user} = {permissions_block(permissions)}" for user, permissions in granted.items()]
    lines = [
        f"T{number} {{ jetstream: enabled, users: [ {{ user: {ADMIN}-{number}, password: secret }}, "
        + ", ".join(f"{{ user: {user}-{number}, password: secret, permissions: $MAY_{user} }}" for user in granted)
        + " ] }"
        for number in range(_ACCOUNTS)
    ]
    return "\n".join([*variables, "accounts {", *lines, "}"])


def violations(server: NatsServer) -> list[str]:
    """What the server refused because of somebody's permissions, from its log."""
    return [line for line in server.log_file.read_text().splitlines() if "Violation" in line]


@pytest.fixture(autouse=True)
def logs_stay_as_they_were() -> Iterator[None]:
    """A test that runs a program's own main configures logs for its stream; the next test must not write to what is closed."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


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
    return nats_server.url.replace("nats://", f"nats://{ADMIN}-{number}:secret@")


@pytest.fixture
def nats_as(nats_server: NatsServer, nats_url: str) -> Iterator[Callable[[str], BusSettings]]:
    before = len(violations(nats_server))
    yield lambda user: BusSettings(url=nats_url.replace(f"{ADMIN}-", f"{user}-"), inbox_prefix=inbox_of(user))
    assert violations(nats_server)[before:] == []


@pytest.fixture(scope="session")
def nats_accounts() -> Iterator[int]:
    """The accounts nobody has used yet."""
    return iter(range(_ACCOUNTS))


@pytest.fixture
async def bus(nats_url: str) -> AsyncIterator[Bus]:
    """A Bus with all streams (in memory), closed after the test."""
    connected = await Bus.connect(BusSettings(url=nats_url, storage="memory"), name="test", clock=SystemClock())
    await connected.ensure_streams()
    try:
        yield connected
    finally:
        await connected.close()


@pytest.fixture
async def bridge_bus(bus: Bus, nats_as: Callable[[str], BusSettings]) -> AsyncIterator[Bus]:
    settings = nats_as("bridge").model_copy(update={"storage": "memory"})
    connected = await Bus.connect(settings, name="bridge", clock=SystemClock())
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


@pytest.fixture
def stored_events() -> Callable[[BusSettings], Awaitable[list[ReceivedEvent]]]:
    """Not by `subscribe_events`: that drops repeats, and a test wants to see them."""

    async def read(settings: BusSettings) -> list[ReceivedEvent]:
        reader = await Bus.connect(settings, name="test", clock=SystemClock())
        try:
            return [
                received_event(found.subject, found.headers, found.body, found.sequence)
                async for found in read_to_end(reader.link, EVENTS, [events_filter("*", "*")])
            ]
        finally:
            await reader.close()

    return read
