"""Field sets against the plain model of a set of paths."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gryvia_devcluster.patch import fieldset

paths = st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"']), min_size=1, max_size=4).map(tuple)
models = st.sets(paths, max_size=6)


def built(model: set[tuple[str, ...]]) -> Any:
    return fieldset.from_members(sorted(model))


def content(fields: Any) -> set[tuple[str, ...]]:
    return set(fieldset.members(fields))


@given(models)
def test_round_trip(model: Any) -> None:
    assert content(built(model)) == model


@given(models, st.randoms())
def test_one_set_has_one_form(model: Any, random: Any) -> None:
    shuffled = list(model)
    random.shuffle(shuffled)
    assert fieldset.from_members(shuffled) == built(model)


@given(models, models)
def test_union(left: Any, right: Any) -> None:
    out = fieldset.union(built(left), built(right))
    assert out == built(left | right)


@given(models, models)
def test_difference(left: Any, right: Any) -> None:
    assert fieldset.difference(built(left), built(right)) == built(left - right)


@given(models, models)
def test_intersection(left: Any, right: Any) -> None:
    assert fieldset.intersection(built(left), built(right)) == built(left & right)


@given(models, paths)
def test_membership(model: Any, path: Any) -> None:
    assert fieldset.has(built(model), path) == (path in model)
