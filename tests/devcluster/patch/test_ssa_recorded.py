"""Histories of applies and updates, recorded from Kubernetes 1.36.3's own field manager, replayed here.

The recordings hold random histories. Left out of them are those in which the real code leaves a null where the last entry of a map
or list was given up: here nothing is left.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch import apply_patch, strategic_merge_patch, track_update

HERE = Path(__file__).parent
CUSTOM = json.loads((HERE / "recorded_custom_histories.json").read_text())
BUILTIN = json.loads((HERE / "recorded_builtin_histories.json").read_text())
STRATEGIC = json.loads((HERE / "recorded_strategic_patches.json").read_text())
KEYED_ITEM = {"k": {"type": "string"}, "v": {"type": "integer"}, "w": {"type": "integer"}}
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
                    "items": {"type": "object", "properties": KEYED_ITEM},
                },
            },
        }
    },
}


def dense(value: Any) -> Any:
    """Without nulls and empty containers, which Go's types do not keep."""
    if isinstance(value, dict):
        return {key: each for key, sub in value.items() if (each := dense(sub)) is not None and each not in ({}, [])}
    return [dense(item) for item in value] if isinstance(value, list) else value


def managed(obj: Any) -> list[Any]:
    entries = [
        {key: each for key, each in entry.items() if key != "time"}
        for entry in obj["metadata"].get("managedFields", [])
    ]
    return sorted(entries, key=lambda entry: (entry["operation"], entry["manager"]))


def unsized(fields: Any) -> Any:
    """Without the two structs and scalars that Go writes although nobody set them."""
    if not isinstance(fields, dict):
        return fields
    left_out = ("f:resources", "f:targetPort")
    return {key: unsized(sub) for key, sub in fields.items() if not (key in left_out and sub == {})}


def content(obj: Any) -> Any:
    bare = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    metadata = {
        key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "creationTimestamp")
    }
    return dense({**bare, "metadata": metadata})


def replay(live: Any, step: Any, kind: Any) -> tuple[Any, str]:
    try:
        if step["op"] == "apply":
            new = apply_patch(live, step["obj"], manager=step["manager"], force=step["force"], now="t", **kind)
        else:
            new = track_update(live, step["obj"], manager=step["manager"], now="t", **kind)
    except ApiError as refused:
        return live, "\n".join(sorted(refused.message.split("\n")))
    return new, ""


@pytest.mark.parametrize("steps", CUSTOM, ids=range(len(CUSTOM)))
def test_a_custom_resources_history(steps: Any) -> None:
    kind = {"schema": SCHEMA, "group_kind": ("x.io", "X"), "api_version": "x.io/v1", "subresource": ""}
    live: Any = None
    for step in steps:
        live, error = replay(live, step, kind)
        assert error == step["error"]
        assert content(live) == content(step["live"])
        assert managed(live) == managed(step["live"])


@pytest.mark.parametrize("case", BUILTIN, ids=[f"{i}-{case['kind']}" for i, case in enumerate(BUILTIN)])
def test_a_built_in_objects_history(case: Any) -> None:
    version = case["steps"][0]["obj"]["apiVersion"]
    kind = {"schema": None, "group_kind": (case["group"], case["kind"]), "api_version": version, "subresource": ""}
    live: Any = None
    for step in case["steps"]:
        live, error = replay(live, step, kind)
        assert error == step["error"]
        assert content(live) == content(step["object"])
        assert [{**entry, "fieldsV1": unsized(entry["fieldsV1"])} for entry in managed(live)] == step["managed"]


@pytest.mark.parametrize("case", STRATEGIC, ids=[f"{i}-{case['kind']}" for i, case in enumerate(STRATEGIC)])
def test_a_strategic_merge_patch(case: Any) -> None:
    assert strategic_merge_patch(case["obj"], case["patch"], (case["group"], case["kind"])) == case["result"]
