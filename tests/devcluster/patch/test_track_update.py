"""Ownership after creates, updates and patches."""

from __future__ import annotations

import copy
from typing import Any

from gryvia_devcluster.patch import apply_patch, track_update

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
CONFIG = {"schema": None, "group_kind": ("", "ConfigMap"), "api_version": "v1", "subresource": ""}
FREE = {"schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "group_kind": ("x.io", "X")}
CUSTOM = {**FREE, "api_version": "x.io/v1", "subresource": ""}


def config(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "uid": "u"}, "data": data}


def track(live: Any, new: Any, manager: str, *, now: str = NOW, kind: Any = CONFIG) -> dict[str, Any]:
    before = copy.deepcopy((live, new))
    out = track_update(live, new, manager=manager, now=now, **kind)
    assert (live, new) == before, "inputs are not changed"
    return out


def fields(obj: Any) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def edited(live: Any, **data: Any) -> dict[str, Any]:
    return {**live, "data": data}


def test_a_create_owns_everything_but_the_servers_bookkeeping() -> None:
    new = config(a="1")
    new["metadata"] |= {"labels": {"l": "v"}, "resourceVersion": "7", "creationTimestamp": NOW, "generation": 1}
    assert fields(track(None, new, "creator")) == {
        "creator": {"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}}
    }


def test_a_custom_resource_owns_its_spec_as_such_too() -> None:
    new = {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": {"b": 1}}}
    assert fields(track(None, new, "creator", kind=CUSTOM)) == {
        "creator": {"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}}}
    }


def test_structs_of_a_built_in_type_are_not_owned_as_such() -> None:
    new = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "resources": {}}], "volumes": [{"name": "v"}]},
    }
    kind = {**CONFIG, "group_kind": ("", "Pod")}
    assert fields(track(None, new, "creator", kind=kind)) == {
        "creator": {
            "f:spec": {
                "f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:resources": {}}},
                "f:volumes": {".": {}, 'k:{"name":"v"}': {".": {}, "f:name": {}}},
            }
        }
    }


def test_a_changed_field_moves_to_the_writer_and_a_removed_one_to_nobody() -> None:
    live = track(None, config(a="1", b="2", c="3"), "first")
    live = track(live, edited(live, a="9", b="2"), "second", now=LATER)
    assert fields(live) == {"first": {"f:data": {".": {}, "f:b": {}}}, "second": {"f:data": {"f:a": {}}}}
    assert [entry["time"] for entry in live["metadata"]["managedFields"]] == [NOW, LATER]


def test_nothing_changed_leaves_managed_fields_as_they_were() -> None:
    live = track(None, config(a="1"), "first")
    assert track(live, live, "second", now=LATER) == live
    bumped = {**live, "metadata": {**live["metadata"], "resourceVersion": "8", "generation": 2}}
    assert track(live, bumped, "second", now=LATER)["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_an_update_takes_fields_from_an_applier() -> None:
    live = apply_patch(None, config(a="1", b="2"), manager="applier", force=False, now=NOW, **CONFIG)
    live = track(live, edited(live, a="9", b="2"), "editor", now=LATER)
    assert fields(live) == {"applier": {"f:data": {"f:b": {}}}, "editor": {"f:data": {"f:a": {}}}}


def test_a_status_write_owns_only_status() -> None:
    live = track(
        None, {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 1}}, "u", kind=CUSTOM
    )
    new = {**live, "status": {"phase": "Ready"}}
    live = track(live, new, "controller", now=LATER, kind={**CUSTOM, "subresource": "status"})
    entry = live["metadata"]["managedFields"][1]
    assert (entry["manager"], entry["subresource"]) == ("controller", "status")
    assert entry["fieldsV1"] == {"f:status": {".": {}, "f:phase": {}}}


def test_a_client_that_drops_managed_fields_does_not_lose_them() -> None:
    live = track(None, config(a="1"), "first")
    new = config(a="2")
    assert set(fields(track(live, new, "second", now=LATER))) == {"first", "second"}


def test_managed_fields_can_be_reset() -> None:
    live = track(None, config(a="1"), "first")
    new = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    out = track(live, new, "second", now=LATER)
    assert "managedFields" not in out["metadata"]
    assert "managedFields" not in track(out, edited(out, a="3"), "third", now=LATER)["metadata"]


def test_more_than_ten_updaters_are_folded_into_ancient_changes() -> None:
    live = track(None, config(k0="0"), "m00")
    for turn in range(1, 14):
        data = {**live["data"], f"k{turn}": "x"}
        live = track(live, edited(live, **data), f"m{turn:02d}", now=f"2026-01-01T00:{turn:02d}:00Z")
    names = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert len(names) == 10
    assert names[0] == "ancient-changes"
    assert set(fields(live)["ancient-changes"]["f:data"]) == {".", "f:k0", "f:k1", "f:k2", "f:k3", "f:k4"}


def test_entries_are_sorted_by_operation_time_and_name() -> None:
    live = track(None, config(a="1"), "z", now=LATER)
    live = track(live, {**live, "data": {**live["data"], "b": "1"}}, "a", now=NOW)
    live = apply_patch(live, config(c="1"), manager="m", force=False, now=LATER, **CONFIG)
    assert [(entry["operation"], entry["manager"]) for entry in live["metadata"]["managedFields"]] == [
        ("Apply", "m"),
        ("Update", "a"),
        ("Update", "z"),
    ]


def test_true_and_one_are_different_values() -> None:
    live = track(
        None, {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 1}}, "u", kind=CUSTOM
    )
    out = track(live, {**live, "spec": {"a": True}}, "v", now=LATER, kind=CUSTOM)
    assert fields(out)["v"] == {"f:spec": {"f:a": {}}}
