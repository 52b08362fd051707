"""Laws of server-side apply, over generated configurations of a custom resource."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch import apply_patch, fieldset, track_update

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "list": {"type": "array", "items": {"type": "integer"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "keyed": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": {
                        "type": "object",
                        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}, "w": {"type": "integer"}},
                    },
                },
            },
        }
    },
}
KIND = {"schema": SCHEMA, "group_kind": ("x.io", "X"), "api_version": "x.io/v1", "subresource": ""}
few = st.integers(0, 2)
names = st.sampled_from("abc")
items = st.fixed_dictionaries({"k": names}, optional={"v": few, "w": few})
specs = st.fixed_dictionaries(
    {},
    optional={
        "n": few,
        "map": st.dictionaries(names, names, max_size=3),
        "set": st.lists(names, max_size=3, unique=True),
        "list": st.lists(few, max_size=2),
        "free": st.dictionaries(names, few | st.dictionaries(names, few, max_size=2), max_size=2),
        "keyed": st.lists(items, max_size=3, unique_by=lambda item: item["k"]),
    },
)


def config(spec: Any, manager: str) -> dict[str, Any]:
    """Every manager has an annotation of its own, so that it always owns something."""
    metadata = {"name": "x", "annotations": {manager: "here"}}
    return {"apiVersion": "x.io/v1", "kind": "X", "metadata": metadata, **({"spec": spec} if spec else {})}


def apply(live: Any, spec: Any, manager: str, *, force: bool = True, now: str = NOW) -> dict[str, Any]:
    return apply_patch(live, config(spec, manager), manager=manager, force=force, now=now, **KIND)


def fields(obj: Any) -> dict[str, Any]:
    entries = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def content(obj: Any) -> Any:
    """The object without bookkeeping and without the order of sets and keyed lists, empty containers left out."""
    spec = copy.deepcopy(obj.get("spec", {}))
    for name in ("set", "keyed"):
        if name in spec:
            spec[name] = sorted(spec[name], key=lambda item: json.dumps(item, sort_keys=True))
    return {key: value for key, value in spec.items() if value not in ([], {})}


@given(specs, specs)
def test_apply_is_idempotent(first: Any, second: Any) -> None:
    live = apply(apply(None, first, "one"), second, "two")
    again = apply(live, second, "two", now=LATER)
    assert again == live


@given(specs)
def test_the_only_manager_gets_what_it_applies(spec: Any) -> None:
    assert content(apply(None, spec, "one")) == content({"spec": spec})


@given(specs, specs)
def test_an_only_managers_second_apply_replaces_its_first(first: Any, second: Any) -> None:
    assert content(apply(apply(None, first, "one"), second, "one")) == content({"spec": second})


@given(specs, specs)
def test_force_then_reapply_without_force_is_stable(first: Any, second: Any) -> None:
    live = apply(apply(None, first, "one"), second, "two", force=True)
    assert apply(live, second, "two", force=False, now=LATER) == live


@given(specs, specs)
def test_disjoint_claims_never_conflict_and_dropping_restores(first: Any, second: Any) -> None:
    only_second = {f"{key}2" if key in first else key: value for key, value in second.items()}
    schema = copy.deepcopy(SCHEMA)
    properties = schema["properties"]["spec"]["properties"]
    properties |= {f"{key}2": value for key, value in properties.items()}
    kind = {**KIND, "schema": schema}
    before = apply_patch(None, config(first, "one"), manager="one", force=False, now=NOW, **kind)
    both = apply_patch(before, config(only_second, "two"), manager="two", force=False, now=NOW, **kind)
    after = apply_patch(both, config({}, "two"), manager="two", force=False, now=NOW, **kind)
    assert content(after) == content(before)
    assert fields(after)[("one", "Apply")] == fields(before)[("one", "Apply")]
    assert fields(after)[("two", "Apply")] == {"f:metadata": {"f:annotations": {"f:two": {}}}}


@given(specs, specs)
def test_there_is_a_conflict_exactly_where_force_would_take_something_away(first: Any, second: Any) -> None:
    live = apply(None, first, "one")
    forced = apply(live, second, "two", force=True)
    loses = fields(forced)[("one", "Apply")] != fields(live)[("one", "Apply")]
    refusal = None
    try:
        assert apply(live, second, "two", force=False) == forced
    except ApiError as refused:
        refusal = refused
    assert (refusal is not None) == loses
    if refusal is not None:
        assert {cause["reason"] for cause in refusal.causes} == {"FieldManagerConflict"}


@given(specs, specs, st.randoms())
def test_the_result_does_not_depend_on_the_order_of_keys(first: Any, second: Any, random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            random.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    straight = apply(apply(None, first, "one"), second, "two")
    mixed = apply(apply(None, shuffled(first), "one"), shuffled(second), "two")
    assert mixed == straight


def dense(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: each for key, sub in value.items() if (each := dense(sub)) not in ({}, [])}
    return [dense(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), specs, st.booleans()), max_size=6))
def test_every_owned_field_exists_and_no_field_is_lost(turns: Any) -> None:
    """After any history of applies and updates, sets hold only what is there, and what is there has an owner. (Not so a map
    whose last entry somebody took: nobody owns it then, on the real server too.)"""
    live: Any = None
    for manager, spec, is_apply in turns:
        if is_apply:
            live = apply(live, spec, manager)
        else:
            new = config(spec, manager)
            if live:
                new["metadata"]["annotations"] |= live["metadata"]["annotations"]
            live = track_update(live, new, manager=manager, now=NOW, **KIND)
    if live is None:
        return
    everything: Any = {}
    for each in fields(live).values():
        everything = fieldset.union(everything, each)
    bare = {**live, "metadata": {"name": "x", "annotations": live["metadata"]["annotations"]}}
    there = fields(track_update(None, bare, manager="all", now=NOW, **KIND))[("all", "Update")]
    assert fieldset.difference(everything, there) == {}
    leaves = apply_patch(None, dense(bare), manager="all", force=False, now=NOW, **KIND)
    assert fieldset.difference(fields(leaves)[("all", "Apply")], everything) == {}
