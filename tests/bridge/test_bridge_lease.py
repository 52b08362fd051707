"""The lease, in virtual time: one leads, it stops before anybody else may begin, and a clean end hands over at once."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from gryvia_bridge.lease import Election, LeaseSettings
from gryvia_common.errors import Conflict, Gone, Transient
from gryvia_common.kube.objects import Json

SETTINGS = LeaseSettings("gryvia-system")


class VirtualClock:
    """Time passes only when `run_until` says so, from one sleeper's end to the next. `skew` is added to the wall time."""

    def __init__(self) -> None:
        self.time = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.time)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self.time + seconds, self._count, future))
        await future

    async def run_until(self, time: float) -> None:
        await self._quiet()
        while self._sleepers and self._sleepers[0][0] <= time:
            due, _, future = heapq.heappop(self._sleepers)
            self.time = max(self.time, due)
            if not future.done():
                future.set_result(None)
            await self._quiet()
        self.time = time

    async def _quiet(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)


class LeaseStore:
    """The API server as far as a Lease is concerned. `wrong` lets an identity's requests fail or hang."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.wrong: Callable[[], None] | None = None
        self.hangs = False

    def view(self, reachable: Callable[[], bool] = lambda: True) -> StoreView:
        return StoreView(self, reachable)


class StoreView:
    """One candidate's client."""

    def __init__(self, store: LeaseStore, reachable: Callable[[], bool]) -> None:
        self._store = store
        self._reachable = reachable
        self.hangs = False

    async def _pass(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if not self._reachable():
            raise Transient("connection refused")

    async def get(self, resource, namespace, name) -> Json:
        await self._pass()
        if self._store.lease is None:
            raise Gone("no lease")
        return self._store.lease

    async def create(self, resource, obj) -> Json:
        await self._pass()
        if self._store.lease is not None:
            raise Conflict("exists")
        self._store.lease = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}}
        return self._store.lease

    async def patch(self, resource, namespace, name, body, *, subresource="", manager="") -> Json:
        await self._pass()
        lease = self._store.lease
        assert lease is not None
        if body["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"]:
            raise Conflict("older")
        version = str(int(lease["metadata"]["resourceVersion"]) + 1)
        self._store.lease = {
            "metadata": {**lease["metadata"], "resourceVersion": version},
            "spec": {**lease["spec"], **body["spec"]},
        }
        return self._store.lease


class Candidate:
    """Its work notes when it runs; `periods` are (begin, end) in virtual seconds, the last one open while it leads."""

    def __init__(self, name: str, store: LeaseStore, clock: VirtualClock, stops_after: float = 0.0) -> None:
        self.up = True
        self.client = store.view(lambda: self.up)
        self.periods: list[list[float]] = []
        self._clock = clock
        self._stops_after = stops_after
        election = Election(self.client, SETTINGS, identity=name, clock=clock)  # type: ignore[arg-type]
        self.task = asyncio.ensure_future(election.lead(self._work))

    @property
    def leads(self) -> bool:
        return bool(self.periods) and len(self.periods[-1]) == 1

    async def _work(self) -> None:
        self.periods.append([self._clock.monotonic()])
        try:
            await asyncio.Event().wait()
        finally:
            if self._stops_after:
                await self._clock.sleep(self._stops_after)
            self.periods[-1].append(self._clock.monotonic())


@pytest.fixture
async def candidates():
    clock, store = VirtualClock(), LeaseStore()
    made: list[Candidate] = []

    def make(name: str, **options: float) -> Candidate:
        made.append(Candidate(name, store, clock, **options))
        return made[-1]

    yield clock, store, make
    for candidate in made:
        candidate.task.cancel()
    await clock.run_until(clock.time + 5)
    await asyncio.gather(*(candidate.task for candidate in made), return_exceptions=True)


async def test_the_first_leads_and_the_second_waits(candidates):
    clock, _, make = candidates
    first = make("a")
    await clock.run_until(1)
    second = make("b")
    await clock.run_until(300)
    assert first.leads
    assert second.periods == []


async def test_a_clean_end_hands_over_within_a_second(candidates):
    clock, store, make = candidates
    first = make("a")
    await clock.run_until(1)
    second = make("b")
    await clock.run_until(60)
    first.task.cancel()
    await clock.run_until(61)
    assert second.leads
    assert store.lease["spec"]["holderIdentity"] == "b"
    assert store.lease["spec"]["leaseTransitions"] >= 1


@pytest.mark.parametrize("how", ["refused", "hangs"])
async def test_a_leader_cut_off_stops_before_another_begins(how, candidates):
    """The client library's election goes on working for ever after its lease has lapsed."""
    clock, _, make = candidates
    first = make("a", stops_after=2.0)
    await clock.run_until(1)
    second = make("b")
    await clock.run_until(60)
    if how == "refused":
        first.up = False
    else:
        first.client.hangs = True
    await clock.run_until(60 + 17)
    assert second.leads
    assert first.periods[0][1] < second.periods[0][0]
    first.up, first.client.hangs = True, False
    await clock.run_until(200)
    assert second.leads, "the old leader campaigns again and waits its turn"
    second.up = False
    await clock.run_until(220)
    assert first.leads
    assert second.periods[0][1] < first.periods[1][0]


async def test_a_leader_that_is_killed_is_replaced_within_seventeen_seconds(candidates):
    clock, _, make = candidates
    first = make("a")
    await clock.run_until(1)
    second = make("b")
    await clock.run_until(60)
    first.up = False  # nothing of it reaches the server any more, not even the release
    first.task.cancel()
    await clock.run_until(60 + 17)
    assert second.leads


async def test_short_troubles_do_not_cost_the_lease(candidates):
    clock, _, make = candidates
    first = make("a")
    await clock.run_until(1)
    make("b")
    for turn in range(10):
        first.up = False
        await clock.run_until(20 * turn + 6)
        first.up = True
        await clock.run_until(20 * turn + 20)
    assert first.periods == [[0.0]]


async def test_a_wall_clock_that_is_wrong_does_not_matter(candidates):
    clock, store, make = candidates
    make("a")
    await clock.run_until(1)
    store.lease["spec"]["renewTime"] = "1970-01-01T00:00:00.000000Z"
    second = make("b")
    await clock.run_until(30)
    assert second.periods == []


async def test_an_error_of_the_work_releases_the_lease_and_is_raised(candidates):
    clock, store, _ = candidates

    async def work() -> None:
        raise ValueError("a bug")

    election = Election(store.view(), SETTINGS, identity="a", clock=clock)
    task = asyncio.ensure_future(election.lead(work))
    await clock.run_until(1)
    with pytest.raises(ValueError, match="a bug"):
        await task
    assert store.lease["spec"]["holderIdentity"] == ""


async def test_a_leader_whose_lease_somebody_else_holds_steps_down_and_does_not_take_it_back(candidates):
    clock, store, make = candidates
    first = make("a")
    await clock.run_until(1)
    spec = {**store.lease["spec"], "holderIdentity": "someone"}
    store.lease = {"metadata": {**store.lease["metadata"], "resourceVersion": "77"}, "spec": spec}
    await clock.run_until(5)
    assert not first.leads
    assert store.lease["spec"]["holderIdentity"] == "someone"
