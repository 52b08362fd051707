"""The work queue keeps its promises for any sequence of operations, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gryvia_common.runtime.queue import LAST_DELAY, Priority, WorkQueue


async def take_now(queue: WorkQueue[str]) -> str | None:
    """What a worker would get without waiting."""
    try:
        async with asyncio.timeout(0):
            return (await queue.take())[0]
    except TimeoutError:
        return None


async def test_many_changes_of_one_key_cost_one_pass() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(100):
        queue.add("a")
    assert await take_now(queue) == "a"
    queue.done("a")
    assert await take_now(queue) is None


async def test_a_key_is_never_worked_on_twice_at_once_and_a_change_meanwhile_is_not_lost() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert await take_now(queue) == "a"
    queue.add("a")
    assert await take_now(queue) is None
    queue.done("a")
    assert await take_now(queue) == "a"


async def test_a_live_change_overtakes_a_replay_of_ten_thousand() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for number in range(10_000):
        queue.add(f"old-{number}", priority=Priority.REPLAY)
    queue.add("old-9999")
    assert await take_now(queue) == "old-9999"
    assert await take_now(queue) == "old-0"


async def test_a_waiting_key_keeps_its_place_when_it_is_added_again() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert [await take_now(queue), await take_now(queue), await take_now(queue)] == ["a", "b", None]


async def test_the_earliest_due_time_counts_and_a_pass_clears_it() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", after=100)
    queue.add("a", after=10)
    queue.add("a", after=50)
    await asyncio.sleep(9.9)
    assert await take_now(queue) is None
    await asyncio.sleep(0.2)
    assert await take_now(queue) == "a"
    queue.done("a")
    await asyncio.sleep(1000)
    assert await take_now(queue) is None


async def test_failures_back_off_exponentially_and_a_success_forgets() -> None:
    queue: WorkQueue[str] = WorkQueue(seed=1)
    delays = [queue.retry("a") for _ in range(30)]
    assert 0.005 <= delays[0] <= 0.00625
    assert all(later >= earlier * 1.5 for earlier, later in pairwise(delays[:15]))
    assert max(delays) <= LAST_DELAY * 1.25
    queue.forget("a")
    assert queue.retry("a") <= 0.00625


async def test_a_server_that_says_when_to_come_back_is_obeyed() -> None:
    queue: WorkQueue[str] = WorkQueue()
    assert queue.retry("a", at_least=7.0) == 7.0
    await asyncio.sleep(6.9)
    assert await take_now(queue) is None
    await asyncio.sleep(0.2)
    assert await take_now(queue) == "a"


async def test_a_removed_key_is_neither_waiting_nor_due() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("a", after=5)
    queue.remove("a")
    await asyncio.sleep(10)
    assert await take_now(queue) is None


async def test_a_cancelled_worker_passes_its_wake_up_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first = asyncio.create_task(queue.take())
    second = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert (await second)[0] == "a"
    assert first.cancelled()


LOOP = asyncio.new_event_loop()
"""Not asyncio.run: that would take the plugin's own loop away from under it."""


@pytest.fixture(autouse=True, scope="module")
def close_loop() -> Iterator[None]:
    yield
    LOOP.close()


class QueueMachine(RuleBasedStateMachine):
    """Against a model: nothing lost, nothing twice at once, nothing invented."""

    keys = st.sampled_from("abcde")

    def __init__(self) -> None:
        super().__init__()
        self.queue: WorkQueue[str] = WorkQueue()
        self.owed: set[str] = set()
        self.running: set[str] = set()

    def run(self, action: object) -> object:
        async def call() -> object:
            result = action()  # type: ignore[operator]
            return await result if asyncio.iscoroutine(result) else result

        return LOOP.run_until_complete(call())

    @rule(key=keys, priority=st.sampled_from(Priority))
    def add(self, key: str, priority: Priority) -> None:
        self.run(lambda: self.queue.add(key, priority=priority))
        self.owed.add(key)

    @rule()
    def take(self) -> None:
        key = self.run(lambda: take_now(self.queue))
        takeable = self.owed - self.running
        if key is None:
            assert not takeable
            return
        assert key in takeable
        self.owed.discard(str(key))
        self.running.add(str(key))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.run(lambda: self.queue.done(key))
        self.running.discard(key)

    @rule(key=keys)
    def remove(self, key: str) -> None:
        self.run(lambda: self.queue.remove(key))
        self.owed.discard(key)

    @invariant()
    def counts(self) -> None:
        self.run(self.check)

    def check(self) -> None:
        assert self.queue.statistics().running == len(self.running)
        assert self.queue.statistics().ready == len(self.owed - self.running)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestQueue = QueueMachine.TestCase
