"""Compare-and-set against a real stream: what another bridge did meanwhile, what was lost, and the order within a subject."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry
from scripted_api import held

from gryvia_bridge.envelope import Envelope
from gryvia_bridge.metrics import BridgeMetrics
from gryvia_bridge.publisher import WAITING_LIMIT, Publisher
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.jetstream import call, stream_state
from gryvia_common.bus.objects import Op, object_headers
from gryvia_common.bus.streams import OBJECTS
from gryvia_common.clock import SystemClock
from gryvia_common.kube.objects import Key


def change(version: int, op: Op = "applied", *, uid: str = "u", name: str = "n") -> Envelope:
    return Envelope("gryviaaijobs", Key("ns", name), 0, uid, version, op, b"{}" if op == "applied" else b"", 0.0)


@pytest.fixture
async def publisher(bus: Bus) -> AsyncIterator[Publisher]:
    made: asyncio.Future[Publisher] = asyncio.get_running_loop().create_future()

    async def hold() -> None:
        async with asyncio.TaskGroup() as tasks:
            made.set_result(Publisher(bus, tasks, clock=SystemClock(), metrics=BridgeMetrics(CollectorRegistry())))
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    yield await made
    holding.cancel()
    await asyncio.wait([holding])


async def store(publisher: Publisher, *changes: Envelope) -> None:
    for one in changes:
        publisher.offer(one)
    async with asyncio.timeout(10):
        await publisher.flush("gryviaaijobs")


async def another_bridge_stored(bus: Bus, version: int, op: Op = "applied", uid: str = "u") -> None:
    await bus.publish(change(version).subject, b"{}", object_headers(uid, version, op))


async def test_something_older_that_another_bridge_stored_is_overwritten(bus, publisher):
    await another_bridge_stored(bus, 3)
    await store(publisher, change(5))
    assert await held(bus) == {"n": ("u", 5, "applied")}


@pytest.mark.parametrize(("version", "op"), [(9, "applied"), (9, "deleted"), (5, "deleted")])
async def test_something_newer_that_another_bridge_stored_stays(version, op, bus, publisher):
    await another_bridge_stored(bus, version, op)
    await store(publisher, change(5))
    assert await held(bus) == {"n": ("u", version, op)}
    await store(publisher, change(12))
    assert await held(bus) == {"n": ("u", 12, "applied")}


async def test_the_same_state_is_stored_once_whoever_stores_it(bus, publisher):
    await another_bridge_stored(bus, 5)
    before = (await stream_state(bus.link, OBJECTS)).last_sequence
    await store(publisher, change(5))
    assert (await stream_state(bus.link, OBJECTS)).last_sequence == before


async def test_a_younger_object_of_the_same_name_replaces_the_older_and_not_the_other_way_round(bus, publisher):
    await store(publisher, change(5, uid="old"), change(8, uid="new"))
    await store(publisher, change(6, "deleted", uid="old"))
    assert await held(bus) == {"n": ("new", 8, "applied")}


async def test_of_a_burst_of_one_subject_the_last_is_what_stays(bus, publisher):
    await store(publisher, *(change(version) for version in range(1, 200)))
    assert await held(bus) == {"n": ("u", 199, "applied")}


async def test_versions_that_come_out_of_order_never_go_down(bus, publisher):
    await store(publisher, *(change(version) for version in (7, 3, 9, 1, 8)))
    assert await held(bus) == {"n": ("u", 9, "applied")}


async def test_what_a_purge_took_is_stored_again_though_the_server_calls_it_a_duplicate(bus, publisher):
    await store(publisher, change(5))
    await call(bus.link, f"STREAM.PURGE.{OBJECTS}")
    publisher.lane("gryviaaijobs").table = {}
    await store(publisher, change(5))
    assert await held(bus) == {"n": ("u", 5, "applied")}


async def test_a_full_publisher_says_so_and_has_room_again(bus, publisher):
    names = [f"n{number}" for number in range(WAITING_LIMIT + 10)]
    for name in names:
        publisher.offer(change(1, uid=name, name=name))
    assert publisher.full
    async with asyncio.timeout(10):
        await publisher.room()
        await publisher.flush("gryviaaijobs")
    assert not publisher.full
    assert set(await held(bus)) == set(names)
