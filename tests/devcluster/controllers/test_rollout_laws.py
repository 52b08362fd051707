"""The rolling update's arithmetic: never too many, never too few, and always an end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_devcluster.controllers.deployment.rollout import (
    Bounds,
    SetSize,
    new_size,
    old_sizes,
    proportional_sizes,
)
from gryvia_devcluster.controllers.template import scaled_amount, template_hash


@st.composite
def rollouts(draw: st.DrawFn) -> tuple[Bounds, list[int]]:
    replicas = draw(st.integers(1, 12))
    surge, unavailable = draw(st.integers(0, 5)), draw(st.integers(0, replicas))
    if surge == unavailable == 0:
        surge = 1
    parts = draw(st.lists(st.integers(0, 5), max_size=3))
    return Bounds(replicas, surge, unavailable), [*parts, max(replicas - sum(parts), 0)]


@given(rollouts(), st.data())
def test_a_rollout_stays_in_its_bounds_and_ends(case: tuple[Bounds, list[int]], data: st.DataObject) -> None:
    bounds, old = case
    if sum(old) > bounds.replicas + bounds.surge:
        return
    new, ready = 0, 0
    for _ in range(200):
        present = SetSize(new, new, ready)
        others = [SetSize(n, n, n) for n in old]
        new, old = new_size(bounds, present, others), old_sizes(bounds, present, others)
        assert new + sum(old) <= bounds.replicas + bounds.surge
        assert ready + sum(old) >= min(bounds.replicas - bounds.unavailable, ready + sum(o.available for o in others))
        if new == ready == bounds.replicas and sum(old) == 0:
            return
        ready = data.draw(st.integers(min(ready + 1, new), new)) if ready < new else ready
    raise AssertionError("the rollout does not end")


@given(st.integers(1, 12), st.integers(0, 12), st.lists(st.integers(0, 6), max_size=3))
def test_scaling_while_paused_keeps_the_sum_and_touches_no_empty_set(replicas: int, new: int, old: list[int]) -> None:
    bounds = Bounds(replicas, 0, 1)
    scaled, others = proportional_sizes(bounds, SetSize(new, new, new), [SetSize(n, n, n) for n in old])
    if new + sum(old):
        assert scaled + sum(others) == replicas
        assert all(after == 0 for before, after in zip(old, others, strict=True) if before == 0)


@pytest.mark.parametrize(
    ("value", "total", "up", "expected"),
    [("25%", 10, True, 3), ("25%", 10, False, 2), (2, 10, True, 2), ("100%", 3, False, 3), (None, 3, True, 0)],
)
def test_percentages_round_up_for_surge_and_down_for_absence(
    value: int | str | None, total: int, up: bool, expected: int
) -> None:
    assert scaled_amount(value, total, up=up) == expected


@given(st.dictionaries(st.text(max_size=3), st.integers(), max_size=4))
def test_the_hash_of_a_template_does_not_depend_on_the_order_of_its_fields(template: dict[str, int]) -> None:
    assert template_hash(template) == template_hash(dict(reversed(template.items())))
    assert template_hash(template) != template_hash(template, collisions=1)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (SetSize(2, 2, 0), SetSize(3, 3, 1), 3),  # two new pods are still missing: the broken old ones stay as well
        (SetSize(2, 2, 2), SetSize(3, 3, 1), 1),  # both new ones are there: broken old ones go first
        (SetSize(1, 1, 1), SetSize(4, 4, 4), 2),
    ],
)
def test_old_pods_go_only_as_far_as_the_new_ones_allow(new: SetSize, old: SetSize, expected: int) -> None:
    assert old_sizes(Bounds(4, 1, 1), new, [old]) == [expected]
