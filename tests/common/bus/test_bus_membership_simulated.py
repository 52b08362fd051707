"""Partition leases under partial failures, in virtual time: never two holders, and everything is held again when it is quiet.

The store is a model of the two buckets: heartbeats expire on its own clock, answers come late or not at all (a write whose answer is
lost has happened all the same), replicas are cut off, killed, stopped cleanly and started again.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from gryvia_common.bus.membership import Membership
from gryvia_common.bus.subjects import PARTITIONS
from gryvia_common.errors import Conflict, Transient

from .warp import WarpClock, run_warped

TTL = 12.0


@dataclass
class Bucket:
    """What NATS holds."""

    beats: dict[str, float] = field(default_factory=dict)
    claims: dict[int, str] = field(default_factory=dict)
    revision: int = 0
    pokes: list[Callable[[], None]] = field(default_factory=list)


class FlakyStore:
    """One replica's way to the bucket."""

    def __init__(self, bucket: Bucket, dice: random.Random) -> None:
        self.bucket = bucket
        self.dice = dice
        self.loss = 0.0
        self.cut_off = False
        self.poked: Callable[[], None] | None = None

    async def renew(self, member: str) -> None:
        await self._way()
        self.bucket.beats[member] = _now() + TTL
        await self._way()

    async def leave(self, member: str) -> None:
        await self._way()
        self.bucket.beats.pop(member, None)
        await self._way()

    async def live(self) -> frozenset[str]:
        await self._way()
        alive = frozenset(member for member, until in self.bucket.beats.items() if until > _now())
        await self._way()
        return alive

    async def claims(self) -> tuple[dict[int, str], int]:
        await self._way()
        answer = dict(self.bucket.claims), self.bucket.revision
        await self._way()
        return answer

    async def write_claims(self, claims: dict[int, str], revision: int) -> int:
        await self._way()
        if revision != self.bucket.revision:
            raise Conflict("somebody else was first")
        self.bucket.claims, self.bucket.revision = dict(claims), revision + 1
        await self._way()
        return self.bucket.revision

    async def poke(self) -> None:
        await self._way()
        for poked in self.bucket.pokes:
            if self.dice.random() >= self.loss:
                asyncio.get_running_loop().call_later(self.dice.uniform(0, 0.01), poked)

    async def listen(self, poked: Callable[[], None]) -> None:
        if self.poked is None:
            self.poked = poked
            self.bucket.pokes.append(poked)

    async def _way(self) -> None:
        """Half a round trip."""
        if self.cut_off or self.dice.random() < self.loss / 2:
            await asyncio.sleep(self.dice.uniform(0.1, 5.0))
            raise Transient("no answer")
        slow = self.dice.random() < self.loss
        await asyncio.sleep(self.dice.uniform(0.5, 4.0) if slow else self.dice.uniform(0.0005, 0.005))


@dataclass
class Replica:
    """A process: what it works on is what `gained` gave it and `release` has not taken back, as long as it is still held."""

    name: str
    store: FlakyStore
    membership: Membership
    working: set[int] = field(default_factory=set)
    task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.membership.run(gained=self.working.update, release=self._release))

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.forget()

    def kill(self) -> None:
        """Without a word: the heartbeat stays behind, the loops end at once."""
        assert self.task is not None
        self.store.cut_off = True
        self.working.clear()
        self.membership._valid_until = float("-inf")
        self.task.cancel()
        self.forget()

    def forget(self) -> None:
        if self.store.poked is not None:
            self.store.bucket.pokes.remove(self.store.poked)
            self.store.poked = None

    async def _release(self, parts: frozenset[int]) -> None:
        await asyncio.sleep(self.store.dice.uniform(0.0, 0.5))  # passes that are under way end
        self.working -= parts


class World:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.bucket = Bucket()
        self.replicas: list[Replica] = []
        self.born = 0

    def add(self) -> Replica:
        self.born += 1
        name = f"pod-{self.born}"
        store = FlakyStore(self.bucket, self.dice)
        replica = Replica(name, store, Membership(None, "jobs", name, clock=WarpClock(), ttl=TTL, store=store))  # type: ignore[arg-type]
        replica.start()
        self.replicas.append(replica)
        return replica

    def check(self) -> None:
        held = Counter(part for replica in self.replicas for part in replica.membership.held)
        doubly = {part: count for part, count in held.items() if count > 1}
        assert not doubly, f"two holders at {_now():.2f}: {doubly}"

    async def watch(self) -> None:
        while True:
            self.check()
            await asyncio.sleep(0.02)

    async def until(self, true: Callable[[], bool], within: float = 60.0) -> None:
        async with asyncio.timeout(within):
            while not true():
                await self.tick()

    async def tick(self) -> None:
        await asyncio.sleep(0.01)

    async def until_settled(self, within: float) -> float:
        """Seconds until all partitions are held, evenly."""
        began = _now()
        while True:
            sizes = [len(replica.membership.held) for replica in self.replicas]
            if sum(sizes) == PARTITIONS and max(sizes) - min(sizes) <= 1:
                return _now() - began
            assert _now() - began < within, f"not settled after {within} s: {sizes}"
            await self.tick()


def _now() -> float:
    return asyncio.get_running_loop().time()


def test_one_replica_holds_everything_at_once() -> None:
    async def scene() -> float:
        world = World(1)
        world.add()
        return await world.until_settled(1.0)

    assert run_warped(scene()) < 0.2


def test_a_clean_stop_hands_over_within_two_seconds() -> None:
    async def scene() -> float:
        world = World(2)
        first, _ = world.add(), world.add()
        await world.until_settled(5.0)
        await first.stop()
        world.replicas.remove(first)
        return await world.until_settled(5.0)

    assert run_warped(scene()) <= 2.0


def test_a_killed_replica_is_replaced_within_twenty_seconds() -> None:
    async def scene() -> float:
        world = World(3)
        first, _ = world.add(), world.add()
        await world.until_settled(5.0)
        first.kill()
        world.replicas.remove(first)
        return await world.until_settled(30.0)

    assert 5.0 < run_warped(scene()) <= 20.0


def test_a_newcomer_gets_its_share_and_the_others_keep_the_rest() -> None:
    async def scene() -> tuple[dict[str, frozenset[int]], dict[str, frozenset[int]]]:
        world = World(4)
        for _ in range(3):
            world.add()
        await world.until_settled(5.0)
        before = {replica.name: replica.membership.held for replica in world.replicas}
        world.add()
        await world.until_settled(5.0)
        return before, {replica.name: replica.membership.held for replica in world.replicas}

    before, after = run_warped(scene())
    assert all(after[name] <= before[name] for name in before)
    assert len(after["pod-4"]) == 4


def test_a_restart_under_the_same_name_takes_over_at_once() -> None:
    async def scene() -> float:
        world = World(5)
        killed = world.add()
        await world.until_settled(5.0)
        killed.kill()
        world.replicas.remove(killed)
        world.born -= 1
        world.add()
        return await world.until_settled(5.0)

    assert run_warped(scene()) <= 1.0


def test_a_replica_that_is_cut_off_holds_nothing_before_the_others_take_over() -> None:
    async def scene() -> tuple[float, float]:
        world = World(6)
        first, second = world.add(), world.add()
        await world.until_settled(5.0)
        watcher = asyncio.create_task(world.watch())
        first.store.cut_off = True
        began = _now()
        await world.until(lambda: not first.membership.held)
        empty = _now() - began
        await world.until(lambda: len(second.membership.held) == PARTITIONS)
        taken = _now() - began
        watcher.cancel()
        return empty, taken

    empty, taken = run_warped(scene())
    assert empty < taken <= 20.0


@pytest.mark.parametrize("seed", range(5))
def test_a_wiped_store_is_dealt_anew_without_two_holders(seed: int) -> None:
    async def scene() -> float:
        world = World(seed)
        for _ in range(3):
            world.add()
        await world.until_settled(5.0)
        watcher = asyncio.create_task(world.watch())
        await asyncio.sleep(world.dice.uniform(0.0, 4.0))
        world.bucket.beats.clear()
        world.bucket.claims.clear()
        world.bucket.revision = 0
        await world.until(lambda: not any(replica.membership.held for replica in world.replicas))
        taken = await world.until_settled(20.0)
        assert not watcher.done(), watcher.exception()
        watcher.cancel()
        return taken

    assert run_warped(scene()) <= 6.0


@pytest.mark.parametrize("seed", range(24))
def test_never_two_holders_whatever_fails(seed: int) -> None:
    async def scene() -> None:
        world = World(seed)
        dice = random.Random(seed + 1000)
        for _ in range(dice.randint(1, 4)):
            world.add()
        watcher = asyncio.create_task(world.watch())
        for _ in range(25):
            await asyncio.sleep(dice.uniform(0.1, 8.0))
            await _upset(world, dice)
            if watcher.done():
                watcher.result()
        for replica in world.replicas:
            replica.store.loss, replica.store.cut_off = 0.0, False
        await world.until_settled(60.0)
        assert not watcher.done(), watcher.exception()
        watcher.cancel()
        for replica in world.replicas:
            await replica.stop()

    run_warped(scene())


async def _upset(world: World, dice: random.Random) -> None:
    victim = dice.choice(world.replicas)
    match dice.randrange(6):
        case 0:
            world.add()
        case 1 if len(world.replicas) > 1:
            victim.kill()
            world.replicas.remove(victim)
        case 2 if len(world.replicas) > 1:
            await victim.stop()
            world.replicas.remove(victim)
        case 3:
            victim.store.cut_off = not victim.store.cut_off
        case 4:
            victim.store.loss = dice.choice([0.0, 0.1, 0.4])
        case _:
            for replica in world.replicas:
                replica.store.loss = 0.2
