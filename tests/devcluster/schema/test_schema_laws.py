"""Laws of the passes over generated schemas and values; the plain part of validation against jsonschema-rs."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from gryvia_devcluster.schema import Structural, check_structural

names = st.sampled_from("abc")
numbers = st.integers(-2, 4)
leaf_schemas = st.one_of(
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 2), "maxLength": st.integers(1, 3)}),
    st.fixed_dictionaries({"type": st.just("string"), "enum": st.just(["a", "b"])}, optional={"default": st.just("a")}),
    st.fixed_dictionaries({"type": st.just("string"), "pattern": st.sampled_from(["^a", "b$", "a|b"])}),
    st.fixed_dictionaries({"type": st.just("integer")}, optional={"minimum": numbers, "maximum": numbers}),
    st.fixed_dictionaries({"type": st.just("number")}, optional={"multipleOf": st.sampled_from([1, 2])}),
    st.fixed_dictionaries({"type": st.just("boolean")}, optional={"default": st.booleans()}),
)  # fmt: skip


def containers(inner: Any) -> Any:
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(names, inner, min_size=1, max_size=3)},
            optional={"required": st.lists(names, min_size=1, max_size=2, unique=True)},
        ),
        st.fixed_dictionaries(
            {"type": st.just("object"), "additionalProperties": inner}, optional={"maxProperties": st.integers(0, 2)}
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"minItems": st.integers(0, 1), "maxItems": st.integers(1, 2)},
        ),
    )


schemas = st.recursive(leaf_schemas, containers, max_leaves=5)
scalars = st.one_of(st.booleans(), numbers, st.sampled_from([0.5, 2.5]), st.text("ab", max_size=4))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)


def root(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": schema}}


def thing(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}, "spec": copy.deepcopy(spec)}


@given(schemas, values)
def test_pruning_twice_is_pruning_once(schema: Any, value: Any) -> None:
    structural, obj = Structural(root(schema)), thing(value)
    structural.prune(obj)
    once = copy.deepcopy(obj)
    assert structural.prune(obj) == []
    assert obj == once


@given(schemas, values)
def test_defaulting_twice_is_defaulting_once_and_takes_nothing_away(schema: Any, value: Any) -> None:
    structural, obj = Structural(root(schema)), thing(value)
    structural.default(obj)
    once = copy.deepcopy(obj)
    structural.default(obj)
    assert obj == once

    def contains(more: Any, less: Any) -> bool:
        if isinstance(less, dict):
            return isinstance(more, dict) and all(
                key in more and contains(more[key], each) for key, each in less.items()
            )
        if isinstance(less, list):
            return isinstance(more, list) and all(contains(a, b) for a, b in zip(more, less, strict=True))
        return bool(more == less)

    assert contains(obj["spec"], value)


@settings(max_examples=200)
@given(schemas, values)
def test_validity_after_defaulting_agrees_with_jsonschema(schema: Any, value: Any) -> None:
    structural, obj = Structural(root(schema)), thing(value)
    structural.default(obj)
    judge = jsonschema_rs.Draft4Validator(root(schema))
    assert (structural.validate(obj, None) == []) == judge.is_valid(obj)


@given(schemas, values)
def test_an_object_is_always_a_valid_update_of_itself(schema: Any, value: Any) -> None:
    structural, obj = Structural(root(schema)), thing(value)
    assert structural.validate(obj, copy.deepcopy(obj)) == []


@given(schemas)
def test_generated_schemas_are_structural(schema: Any) -> None:
    assert check_structural(root(schema)) == []
