"""JSON patch and merge patch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_merge_patch import create_patch, merge

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch import json_patch, merge_patch

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)
objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return value


@given(objects, objects)
def test_merge_patch_agrees_with_the_library_and_changes_no_input(obj: Any, patch: Any) -> None:
    before = copy.deepcopy((obj, patch))
    out = merge_patch(obj, patch)
    assert (obj, patch) == before
    assert out == merge(copy.deepcopy(obj), copy.deepcopy(patch))


@given(objects.map(without_nulls), objects.map(without_nulls))
def test_a_created_merge_patch_leads_to_its_target(source: Any, target: Any) -> None:
    assert merge_patch(source, create_patch(source, target)) == target


@given(objects, objects)
def test_merge_patch_twice_is_once(obj: Any, patch: Any) -> None:
    once = merge_patch(obj, patch)
    assert merge_patch(once, patch) == once


def test_json_patch_changes_a_copy() -> None:
    obj = {"metadata": {"labels": {"a/b": "1"}}, "spec": {"list": [1, 2]}}
    before = copy.deepcopy(obj)
    out = json_patch(
        obj,
        [
            {"op": "test", "path": "/metadata/labels/a~1b", "value": "1"},
            {"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"},
            {"op": "add", "path": "/spec/list/-", "value": 3},
            {"op": "remove", "path": "/spec/list/0"},
            {"op": "copy", "from": "/spec/list", "path": "/spec/copy"},
        ],
    )
    assert out == {"metadata": {"labels": {"a/b": "2"}}, "spec": {"list": [2, 3], "copy": [2, 3]}}
    assert obj == before


@pytest.mark.parametrize(
    "op",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "remove", "path": "/zz"},
        {"op": "replace", "path": "/q/r", "value": 1},
        {"op": "add", "path": "/l/7", "value": 1},
        {"op": "copy", "from": "/zz", "path": "/a"},
        {"op": "remove", "path": ""},
        {"op": "zap", "path": "/a"},
        {"path": "/a"},
    ],
)
def test_a_patch_that_does_not_apply_is_unprocessable(op: Any) -> None:
    with pytest.raises(ApiError) as caught:
        json_patch({"a": 1, "l": [1]}, [op])
    assert (caught.value.code, caught.value.message) == (
        422,
        "the server rejected our request due to an error in our request",
    )


@pytest.mark.parametrize("ops", [{}, "x", None, [3]])
def test_what_is_no_json_patch_is_a_bad_request(ops: Any) -> None:
    with pytest.raises(ApiError) as caught:
        json_patch({"a": 1}, ops)
    assert caught.value.code == 400


def test_too_many_operations_are_refused() -> None:
    with pytest.raises(ApiError, match="maximum operations in a JSON patch is 10000, got 10001"):
        json_patch({}, [{"op": "add", "path": "/a", "value": 1}] * 10_001)


@pytest.mark.parametrize("patch", [[], "x", None, 1])
def test_a_merge_patch_is_an_object(patch: Any) -> None:
    with pytest.raises(ApiError) as caught:
        merge_patch({}, patch)
    assert caught.value.code == 400
