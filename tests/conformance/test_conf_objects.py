"""Create, read, replace and delete; generations, versions, preconditions and subresources."""

from __future__ import annotations

from typing import Any

import pytest
from tools.realcluster.http import MERGE

from .widgets import CONFIG_MAPS_PATH, PODS_PATH, WIDGETS_PATH, widget


async def test_create_read_replace_delete(talk: Any) -> None:
    await talk("POST", WIDGETS_PATH, widget(color="blue"))
    await talk("POST", WIDGETS_PATH, widget())
    read = (await talk("GET", f"{WIDGETS_PATH}/a")).body
    await talk("PUT", f"{WIDGETS_PATH}/a", {**read, "spec": {"size": 2}})
    await talk("PUT", f"{WIDGETS_PATH}/a", {**read, "spec": {"size": 3}})
    await talk("PUT", f"{WIDGETS_PATH}/b", {**read, "spec": {"size": 3}})
    await talk("DELETE", f"{WIDGETS_PATH}/a")
    await talk("GET", f"{WIDGETS_PATH}/a")
    await talk("DELETE", f"{WIDGETS_PATH}/a")
    await talk("PUT", f"{WIDGETS_PATH}/a", widget())
    await talk("PUT", f"{WIDGETS_PATH}/a", read)


async def test_builtin_objects(talk: Any) -> None:
    await talk("POST", CONFIG_MAPS_PATH, {"metadata": {"name": "c"}, "data": {"a": "1"}})
    read = (await talk("GET", f"{CONFIG_MAPS_PATH}/c")).body
    await talk("PUT", f"{CONFIG_MAPS_PATH}/c", {**read, "data": {"b": "2"}})
    await talk("PUT", f"{CONFIG_MAPS_PATH}/c", {"metadata": {"name": "c"}, "data": {"c": "3"}, "immutable": True})
    await talk("PATCH", f"{CONFIG_MAPS_PATH}/c", {"data": {"d": "4"}}, content_type=MERGE)
    await talk("DELETE", f"{CONFIG_MAPS_PATH}/c")


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "Not-A-Name"},
        {"name": "a/b"},
        {},
        {"name": "a", "namespace": "elsewhere"},
        {"name": "a", "labels": {"-": "x"}},
        {"name": "a", "labels": {"x": "not a value"}},
        {"name": "a", "annotations": {"not a key": ""}},
        {"name": "a", "resourceVersion": "1"},
        {"name": "a", "uid": "mine", "generation": 7, "creationTimestamp": "2020-01-01T00:00:00Z"},
        {"name": "a", "finalizers": ["plain"]},
        {"name": "a", "finalizers": ["example.com/a", "example.com/a"]},
        {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
        {
            "name": "a",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in ("p", "q")
            ],
        },
        {"name": "x" * 254},
        {"name": "a", "labels": {"x": 1}},
        {"name": "a", "generateName": "b-"},
        {"name": "a", "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3},
        {"name": "a", "selfLink": "/x", "unknown": 1},
        {"name": "a", "managedFields": [{"manager": "m", "operation": "Sing"}]},
    ],
    ids=range(19),
)
@pytest.mark.parametrize("custom", [True, False], ids=["custom", "builtin"])
async def test_metadata(talk: Any, metadata: Any, custom: bool) -> None:
    """What is refused, what is ignored, with which words."""
    body = {**widget(), "metadata": metadata} if custom else {"metadata": metadata, "data": {"a": "b"}}
    await talk("POST", WIDGETS_PATH if custom else CONFIG_MAPS_PATH, body)


async def test_wrong_bodies(talk: Any) -> None:
    for body in (b"", b"{", b"[]", b'"text"', b"null", b'{"spec": 1}', b"\xff"):
        await talk("POST", WIDGETS_PATH, body)
    await talk("POST", WIDGETS_PATH, {**widget(), "kind": "Gadget"})
    await talk("POST", WIDGETS_PATH, {**widget(), "apiVersion": "example.com/v2"})
    await talk("POST", WIDGETS_PATH, {**widget(), "spec": None})
    await talk("POST", CONFIG_MAPS_PATH, {"metadata": {"name": "a"}, "data": {"a": 1}})
    await talk("POST", CONFIG_MAPS_PATH, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    await talk("POST", WIDGETS_PATH, widget(), content_type="text/plain")
    await talk("GET", f"{WIDGETS_PATH}/a/nothing")
    await talk("GET", "/apis/example.com/v1/namespaces/{ns}/gadgets")
    await talk("PATCH", f"{WIDGETS_PATH}/a", {}, content_type="application/json")
    await talk("POST", f"{WIDGETS_PATH}/a", widget())


async def test_yaml_bodies(talk: Any) -> None:
    text = b"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: from-yaml}\nspec: {size: 3}\n"
    await talk("POST", WIDGETS_PATH, text, content_type="application/yaml")
    await talk("POST", WIDGETS_PATH, b"a: [", content_type="application/yaml")


async def test_a_pod_gets_what_admission_adds(talk: Any) -> None:
    """Its account, its priority and its tolerations; of a real server a token as well, unless it wants none."""
    for name, more in {
        "plain": {},
        "without": {"automountServiceAccountToken": False},
        "patient": {"automountServiceAccountToken": False, "tolerations": [{"operator": "Exists"}]},
        "nervous": {
            "automountServiceAccountToken": False,
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "tolerationSeconds": 1}],
        },
    }.items():
        spec = {"containers": [{"name": "c", "image": "i:1"}], **more}
        await talk("POST", f"{PODS_PATH}?dryRun=All", {"metadata": {"name": name}, "spec": spec})


async def test_generation_moves_with_the_spec_alone(talk: Any) -> None:
    await talk("POST", WIDGETS_PATH, widget())
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"spec": {"size": 2}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"spec": {"size": 2}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a/status", {"status": {"phase": "Up"}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"status": {"phase": "Down"}, "spec": {"size": 3}}, content_type=MERGE)


async def test_the_status_subresource_writes_the_status_alone(talk: Any) -> None:
    await talk("POST", WIDGETS_PATH, {**widget(), "status": {"phase": "Early"}})
    read = (await talk("GET", f"{WIDGETS_PATH}/a/status")).body
    changed = {**read, "spec": {"size": 9}, "status": {"phase": "Up"}}
    changed["metadata"] = {**read["metadata"], "labels": {"no": "label"}}
    changed = (await talk("PUT", f"{WIDGETS_PATH}/a/status", changed)).body
    await talk("PUT", f"{WIDGETS_PATH}/a", {**changed, "spec": {"size": 4}, "status": {"phase": "Lost"}})
    await talk("PATCH", f"{WIDGETS_PATH}/a/status", {"status": {"phase": 7}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/nobody/status", {"status": {}}, content_type=MERGE)
    stale = {"metadata": {"resourceVersion": read["metadata"]["resourceVersion"]}, "status": {"phase": "Old"}}
    await talk("PATCH", f"{WIDGETS_PATH}/a/status", stale, content_type=MERGE)
    await talk("PUT", f"{WIDGETS_PATH}/a/status", {**read, "status": {"phase": "Old"}})


async def test_scale(talk: Any) -> None:
    await talk("POST", WIDGETS_PATH, widget(replicas=2))
    await talk("PATCH", f"{WIDGETS_PATH}/a/status", {"status": {"replicas": 1, "selector": "a=b"}}, content_type=MERGE)
    scale = (await talk("GET", f"{WIDGETS_PATH}/a/scale")).body
    await talk("PUT", f"{WIDGETS_PATH}/a/scale", {**scale, "spec": {"replicas": 5}})
    await talk("PUT", f"{WIDGETS_PATH}/a/scale", {**scale, "spec": {"replicas": 6}})
    await talk("PATCH", f"{WIDGETS_PATH}/a/scale", {"spec": {"replicas": 7}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a/scale", {"spec": {"replicas": -1}}, content_type=MERGE)
    await talk("GET", f"{WIDGETS_PATH}/a")
    await talk("GET", f"{WIDGETS_PATH}/nobody/scale")


async def test_preconditions_of_a_deletion(talk: Any) -> None:
    read = (await talk("POST", WIDGETS_PATH, widget())).body["metadata"]
    await talk("DELETE", f"{WIDGETS_PATH}/a", {"preconditions": {"uid": "another"}})
    await talk("DELETE", f"{WIDGETS_PATH}/a", {"preconditions": {"resourceVersion": "1"}})
    await talk("DELETE", f"{WIDGETS_PATH}/a", {"propagationPolicy": "Sideways"})
    await talk("DELETE", f"{WIDGETS_PATH}/a", {"orphanDependents": True, "propagationPolicy": "Orphan"})
    await talk("DELETE", f"{WIDGETS_PATH}/a", {"dryRun": ["All"]})
    await talk("DELETE", f"{WIDGETS_PATH}/a", {"dryRun": ["Some"]})
    await talk("DELETE", f"{WIDGETS_PATH}/a", {"preconditions": {"uid": read["uid"]}})


async def test_finalizers_hold_an_object_until_the_last_is_gone(talk: Any) -> None:
    held = {**widget(), "metadata": {"name": "a", "finalizers": ["example.com/a", "example.com/b"]}}
    await talk("POST", WIDGETS_PATH, held)
    await talk("DELETE", f"{WIDGETS_PATH}/a")
    await talk("DELETE", f"{WIDGETS_PATH}/a")
    await talk("POST", WIDGETS_PATH, widget())
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"spec": {"size": 2}}, content_type=MERGE)
    more = {"metadata": {"finalizers": ["example.com/a", "example.com/b", "example.com/c"]}}
    await talk("PATCH", f"{WIDGETS_PATH}/a", more, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"metadata": {"finalizers": ["example.com/b"]}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"metadata": {"finalizers": []}}, content_type=MERGE)
    await talk("GET", f"{WIDGETS_PATH}/a")


async def test_dry_runs_answer_and_store_nothing(talk: Any) -> None:
    await talk("POST", f"{WIDGETS_PATH}?dryRun=All", widget())
    await talk("GET", f"{WIDGETS_PATH}/a")
    await talk("POST", WIDGETS_PATH, widget())
    await talk("PATCH", f"{WIDGETS_PATH}/a?dryRun=All", {"spec": {"size": 2}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a?dryRun=Some", {"spec": {"size": 2}}, content_type=MERGE)
    await talk("GET", f"{WIDGETS_PATH}/a")


async def test_a_generated_name_is_the_prefix_and_five_characters(api: Any, namespace: str) -> None:
    body = {**widget(), "metadata": {"generateName": "made-"}}
    names = set()
    for _ in range(5):
        created = await api.ok("POST", WIDGETS_PATH.replace("{ns}", namespace), body)
        names.add(created["metadata"]["name"])
        assert created["metadata"]["generateName"] == "made-"
    assert len(names) == 5
    assert {len(name) for name in names} == {10}


async def test_deleting_a_collection(talk: Any) -> None:
    for name, label in (("a", "x"), ("b", "y"), ("c", "x")):
        body = widget(name)
        body["metadata"]["labels"] = {"l": label}
        await talk("POST", WIDGETS_PATH, body)
    await talk("DELETE", f"{WIDGETS_PATH}?labelSelector=l%3Dx")
    await talk("GET", WIDGETS_PATH)
