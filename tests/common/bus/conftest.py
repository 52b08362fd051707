"""What the bus tests share: a handler that records what it is told, and ways to put objects on the bus."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gryvia_common.bus.connection import Bus, Published
from gryvia_common.bus.jetstream import call
from gryvia_common.bus.objects import ObjectMessage, Op, object_headers
from gryvia_common.bus.subjects import object_subject, partition_of, sync_subject


class Recorder:
    """A FollowHandler that keeps the state a cache would have, and wakes whoever waits for it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.messages: list[ObjectMessage] = []
        self.state: dict[str, int] = {}
        self._news = asyncio.Event()

    def reset(self) -> None:
        self.calls.append("reset")
        self.state.clear()
        self._news.set()

    def received(self, message: ObjectMessage) -> None:
        self.messages.append(message)
        if message.op == "applied":
            self.state[message.name] = message.version
        else:
            self.state.pop(message.name, None)
        self._news.set()

    def synced(self) -> None:
        self.calls.append("synced")
        self._news.set()

    async def until(self, true: Callable[[Recorder], bool], within: float = 10.0) -> None:
        async with asyncio.timeout(within):
            while not true(self):
                self._news.clear()
                await self._news.wait()


async def eventually(true: Callable[[], bool | Awaitable[bool]], within: float = 10.0) -> float:
    """Asks again and again until it is so; seconds that took. For what nobody announces."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(within):
        while True:
            answer = true()
            if answer if isinstance(answer, bool) else await answer:
                return loop.time() - began
            await asyncio.sleep(0.005)


async def until_pulling(bus: Bus, stream: str) -> None:
    """The stream's consumer has an open pull."""

    async def waiting() -> bool:
        names = (await call(bus.link, f"CONSUMER.NAMES.{stream}", {}))["consumers"] or []
        infos = [await call(bus.link, f"CONSUMER.INFO.{stream}.{name}") for name in names]
        return any(info["num_waiting"] for info in infos)

    await eventually(waiting)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


async def put(
    bus: Bus, name: str, version: int = 1, *, plural: str = "jobs", op: Op = "applied", expected: int | None = None
) -> Published:
    """One object's state, as the bridge publishes it."""
    body = b"{}" if op == "applied" else b""
    subject = object_subject(plural, partition_of("ns", name), "ns", name)
    return await bus.publish(subject, body, object_headers(f"uid-{name}", version, op), expected_sequence=expected)


async def mark(bus: Bus, plural: str = "jobs") -> None:
    """The bridge says: this type is complete."""
    assert (await bus.publish(sync_subject(plural), b"", {})).outcome == "stored"
