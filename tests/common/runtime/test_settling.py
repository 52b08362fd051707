"""Who gets on is never slowed down; who goes round in a circle is, soon and more and more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.runtime.settling import PASSES, REPEATS, Settling


def test_hundreds_of_steps_in_a_row_are_no_circle() -> None:
    settling = Settling()
    assert [settling.changed({"stepsCompleted": number}) for number in range(400)] == [0.0] * 400


@given(st.integers(1, 5), st.sampled_from([None, {"phase": "Running"}]))
def test_a_circle_is_slowed_down_more_and_more_until_there_is_news(length: int, status: dict[str, str] | None) -> None:
    settling = Settling()
    around = [{"at": number} if number else status for number in range(length)]
    waits = [settling.changed(around[number % length]) for number in range(60)]
    free = waits.index(next(wait for wait in waits if wait))
    assert REPEATS <= free <= REPEATS + length
    assert waits[free:] == sorted(waits[free:])
    assert waits[-1] == 300.0
    settling.rest()
    assert settling.changed(status) == 0.0


def test_a_counter_that_leads_nowhere_is_slowed_down_in_the_end() -> None:
    settling = Settling()
    waits = [settling.changed({"count": number}) for number in range(PASSES + 3)]
    assert not any(waits[:PASSES])
    assert waits[PASSES:] == [2.0, 4.0, 8.0]
