"""Partition leases on a real server: dealt, handed over, taken over, and found again after a restart and a wipe."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator
from typing import Protocol

import pytest

from gryvia_cli.nats_server import NatsServer
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.bus.jetstream import call
from gryvia_common.bus.leases import NatsLeases
from gryvia_common.bus.membership import Membership
from gryvia_common.bus.streams import CLAIMS_STREAM, MEMBERS_STREAM
from gryvia_common.bus.subjects import PARTITIONS
from gryvia_common.clock import SystemClock
from gryvia_common.errors import Conflict, Gone

from .conftest import eventually

ALL = frozenset(range(PARTITIONS))


class Replica:
    """One process of the service, on a connection of its own."""

    def __init__(self, bus: Bus, name: str, ttl: float) -> None:
        self.bus = bus
        self.membership = Membership(bus, "jobs", name, clock=SystemClock(), ttl=ttl)
        self.released: list[frozenset[int]] = []
        self.gained: list[frozenset[int]] = []
        self.task = asyncio.create_task(self.membership.run(gained=self.gained.append, release=self._release))

    @property
    def held(self) -> frozenset[int]:
        return self.membership.held

    async def _release(self, parts: frozenset[int]) -> None:
        assert not parts & self.held
        self.released.append(parts)

    async def stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task
        await self.bus.close()


class MakeReplica(Protocol):
    async def __call__(self, name: str, ttl: float = 12.0) -> Replica: ...


@pytest.fixture
async def replica(nats_url: str) -> AsyncIterator[MakeReplica]:
    made: list[Replica] = []

    async def make(name: str, ttl: float = 12.0) -> Replica:
        bus = await Bus.connect(BusSettings(url=nats_url, storage="memory"), name=name, clock=SystemClock())
        await bus.ensure_streams(ttl)
        made.append(Replica(bus, name, ttl))
        return made[-1]

    yield make
    for one in made:
        await one.stop()


def dealt(*replicas: Replica) -> bool:
    sizes = [len(one.held) for one in replicas]
    held = frozenset().union(*(one.held for one in replicas))
    return held == ALL and sum(sizes) == PARTITIONS and max(sizes) - min(sizes) <= 1


async def test_partitions_are_dealt_handed_over_and_taken_back(replica: MakeReplica) -> None:
    first = await replica("a")
    assert await eventually(lambda: dealt(first), 5) < 2
    second = await replica("b")
    assert await eventually(lambda: dealt(first, second), 5) < 2
    assert first.released == [second.held]
    third = await replica("c")
    await eventually(lambda: dealt(first, second, third), 5)
    mine, others = first.held, (second.held, third.held)
    await first.stop()
    assert first.released[-1] == mine
    assert await eventually(lambda: dealt(second, third), 5) < 2
    assert others[0] <= second.held
    assert others[1] <= third.held


async def test_a_replica_that_dies_without_a_word_is_replaced_when_its_heartbeat_ends(replica: MakeReplica) -> None:
    first, second = await replica("a", 2.0), await replica("b", 2.0)
    await eventually(lambda: dealt(first, second), 5)
    await first.bus.close()  # its process is gone as far as NATS can tell
    began = time.monotonic()
    await eventually(lambda: not first.held, 5)
    assert len(second.held) < PARTITIONS
    await eventually(lambda: second.held == ALL, 10)
    assert 1.0 < time.monotonic() - began < 8


async def test_leases_come_back_after_a_restart_and_after_a_wipe(own_nats: NatsServer) -> None:
    buses = [await Bus.connect(BusSettings(url=own_nats.url), name=n, clock=SystemClock()) for n in "ab"]
    await buses[0].ensure_streams()
    first, second = (Replica(bus, bus.link.name, 12.0) for bus in buses)
    await eventually(lambda: dealt(first, second), 5)
    before = first.held
    await own_nats.kill()
    await own_nats.start(supervise=False)
    await eventually(lambda: first.bus.connected and second.bus.connected, 6)
    await eventually(lambda: dealt(first, second), 6)
    assert first.held == before
    await own_nats.kill()
    shutil.rmtree(own_nats.data_dir / "jetstream")
    await own_nats.start(supervise=False)
    await eventually(lambda: first.bus.connected and second.bus.connected, 6)
    await buses[0].ensure_streams()  # as the bridge does
    leases = NatsLeases(buses[0], "jobs")

    async def recorded() -> bool:
        with contextlib.suppress(Gone):
            claims, _ = await leases.claims()
            return len(claims) == PARTITIONS and len(set(claims.values())) == 2
        return False

    await eventually(recorded)
    await eventually(lambda: dealt(first, second))
    await first.stop()
    await second.stop()


async def test_the_store_compares_and_sets_and_tells_who_lives(bus: Bus) -> None:
    for bucket in (MEMBERS_STREAM, CLAIMS_STREAM):
        await call(bus.link, f"STREAM.DELETE.{bucket}")
    leases = NatsLeases(bus, "jobs")
    with pytest.raises(Gone):
        await leases.live()
    with pytest.raises(Gone):
        await leases.claims()
    await bus.ensure_streams(1.0)
    assert await leases.claims() == ({}, 0)
    revision = await leases.write_claims({0: "a/1"}, 0)
    assert await leases.claims() == ({0: "a/1"}, revision)
    with pytest.raises(Conflict):
        await leases.write_claims({0: "b/1"}, 0)
    await leases.renew("a/1")
    await leases.renew("b/1")
    assert await leases.live() == {"a/1", "b/1"}
    await leases.leave("a/1")
    assert await leases.live() == {"b/1"}

    async def nobody() -> bool:
        return not await leases.live()

    await eventually(nobody)


async def test_other_services_have_their_own_claims(bus: Bus) -> None:
    jobs, tuner = NatsLeases(bus, "jobs"), NatsLeases(bus, "tuner")
    await jobs.renew("a/1")
    await jobs.write_claims({0: "a/1"}, 0)
    assert await tuner.live() == frozenset()
    assert await tuner.claims() == ({}, 0)


async def test_the_buckets_read_like_any_kv_bucket(bus: Bus) -> None:
    leases = NatsLeases(bus, "jobs")
    await leases.renew("a/1")
    assert (await call(bus.link, "STREAM.INFO.KV_gryvia-members"))["config"]["max_age"] == 12_000_000_000
    keys = await bus.link._client.jetstream().key_value("gryvia-members")
    assert await keys.keys() == ["jobs.a.1"]
