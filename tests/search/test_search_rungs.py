"""Rungs: the best are never stopped, and what was recorded at a rung stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gryvia_search.rungs import Rungs

VALUES = st.lists(st.one_of(st.none(), st.floats(-10, 10)), min_size=1, max_size=12)


@given(VALUES, st.booleans(), st.integers(2, 4))
def test_the_best_is_never_stopped_and_one_alone_neither(values, minimize, factor):
    kept = {n: ((1, value),) for n, value in enumerate(values) if value is not None}
    stops = Rungs(1, factor, 2).judged(kept, range(len(values)), minimize=minimize)
    known = [value for value in values if value is not None]
    best = None if not known else min(known) if minimize else max(known)
    for number in stops:
        assert values[number] is not None
        assert values[number] != best
    assert len(known) >= 2 or not stops
    assert len(known) - len(stops) >= -(-len(known) // factor) or not known


@given(VALUES, st.booleans())
def test_the_dead_judge_and_are_not_judged(values, minimize):
    kept = {n: ((1, value),) for n, value in enumerate(values) if value is not None}
    everyone = Rungs(1, 3, 2).judged(kept, list(kept), minimize=minimize)
    for running in kept:
        alone = Rungs(1, 3, 2).judged(kept, [running], minimize=minimize)
        assert alone == {number: verdict for number, verdict in everyone.items() if number == running}


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(-5, 5)), max_size=30))
def test_the_points_at_the_rungs_are_bounded_and_never_change(points):
    """However often one looks, what was recorded at a rung stays."""
    rungs, kept = Rungs(1, 3, 27), ()
    seen = {}
    for count in range(len(points) + 1):
        kept = rungs.reached(kept, sorted(points[:count]))
        assert len(kept) <= len(rungs.levels) == 4
        assert seen.items() <= dict(kept).items()
        seen = dict(kept)
