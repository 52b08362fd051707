"""Every type of patch, on custom and on built-in objects."""

from __future__ import annotations

from typing import Any

from tools.realcluster.http import JSON_PATCH, MERGE, STRATEGIC

from .widgets import CONFIG_MAPS_PATH, PODS_PATH, WIDGETS_PATH, widget

DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"


async def test_merge_patches(talk: Any) -> None:
    await talk("POST", WIDGETS_PATH, widget(tags=["a", "b"], labels={"x": "1", "y": "2"}, free={"deep": {"a": 1}}))

    async def patch(body: Any) -> Any:
        return await talk("PATCH", f"{WIDGETS_PATH}/a", body, content_type=MERGE)

    await patch({"spec": {"tags": ["c"]}})
    await patch({"spec": {"labels": {"x": None, "z": "3"}}})
    await patch({"spec": {"free": {"deep": {"b": 2}}}})
    await patch({"spec": {"color": None}})
    await patch({"spec": {"size": None}})
    await patch({"spec": {"size": "large"}})
    await patch({"metadata": {"name": "b"}})
    await patch({"metadata": {"uid": "another"}})
    await patch({"metadata": {"resourceVersion": "1"}, "spec": {"size": 9}})
    await patch({"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 99}})
    await patch({"kind": "Gadget"})
    await patch({"apiVersion": "example.com/v2"})
    await patch({"spec": {"unknown": 1}})
    await patch([])
    await patch(b"{")
    await talk("PATCH", f"{WIDGETS_PATH}/nobody", {"spec": {"size": 2}}, content_type=MERGE)


async def test_json_patches(talk: Any) -> None:
    await talk("POST", WIDGETS_PATH, widget(list=[1, 2, 3]))

    async def patch(*operations: Any) -> Any:
        return await talk("PATCH", f"{WIDGETS_PATH}/a", list(operations), content_type=JSON_PATCH)

    await patch({"op": "replace", "path": "/spec/size", "value": 5})
    await patch({"op": "add", "path": "/spec/list/1", "value": 9}, {"op": "add", "path": "/spec/list/-", "value": 4})
    await patch({"op": "remove", "path": "/spec/list/0"})
    await patch({"op": "test", "path": "/spec/size", "value": 6}, {"op": "replace", "path": "/spec/size", "value": 7})
    await patch({"op": "test", "path": "/spec/size", "value": 5}, {"op": "replace", "path": "/spec/size", "value": 7})
    await patch({"op": "copy", "from": "/spec/size", "path": "/spec/replicas"})
    await patch({"op": "move", "from": "/spec/replicas", "path": "/spec/low"})
    await patch({"op": "remove", "path": "/spec/nothing"})
    await patch({"op": "replace", "path": "/spec/nothing/below", "value": 1})
    await patch({"op": "add", "path": "/spec/nothing/below", "value": 1})
    await patch({"op": "sing", "path": "/spec/size"})
    await patch({"op": "replace", "path": "/metadata/labels", "value": {"a~b/c": "x"}})
    await patch({"op": "add", "path": "/metadata/labels", "value": {"a": "x"}})
    await patch({"op": "add", "path": "/metadata/labels/example.com~1b", "value": "y"})
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"op": "x"}, content_type=JSON_PATCH)


async def test_strategic_patches_of_a_custom_type_are_not_supported(talk: Any) -> None:
    await talk("POST", WIDGETS_PATH, widget())
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"spec": {"size": 2}}, content_type=STRATEGIC)


def deployment() -> Any:
    return {
        "metadata": {"name": "d", "labels": {"a": "b"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {
                    "containers": [
                        {
                            "name": "one",
                            "image": "one:1",
                            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                            "ports": [{"containerPort": 80}],
                        },
                        {"name": "two", "image": "two:1"},
                    ],
                },
            },
        },
    }


async def test_strategic_merge_patches_merge_lists_by_their_key(api: Any, namespace: str) -> None:
    """Through pods' templates, where the keys are many. (The controllers write as well, so not to the letter.)"""
    path = DEPLOYMENTS.replace("{ns}", namespace)
    await api.ok("POST", path, deployment())

    async def patch(*containers: Any, **pod: Any) -> Any:
        spec = {"template": {"spec": {"containers": list(containers), **pod}}}
        answer = await api.ok("PATCH", f"{path}/d", {"spec": spec}, content_type=STRATEGIC)
        return answer["spec"]["template"]["spec"]

    merged = await patch({"name": "two", "image": "two:2"}, {"name": "three", "image": "three:1"})
    assert sorted(c["image"] for c in merged["containers"]) == ["one:1", "three:1", "two:2"]
    merged = await patch({"name": "one", "env": [{"name": "A", "$patch": "delete"}, {"name": "C", "value": "3"}]})
    [one] = [c for c in merged["containers"] if c["name"] == "one"]
    assert [e["name"] for e in one["env"]] == ["C", "B"]
    merged = await patch({"$patch": "replace"}, {"name": "only", "image": "only:1"})
    assert [c["name"] for c in merged["containers"]] == ["only"]
    merged = await patch(tolerations=[{"key": "a", "operator": "Exists"}], nodeSelector={"x": "y"})
    assert merged["tolerations"] == [{"key": "a", "operator": "Exists"}]
    merged = await patch(nodeSelector={"x": None, "z": "1"})
    assert merged["nodeSelector"] == {"z": "1"}


async def test_strategic_patches_of_flat_objects(talk: Any) -> None:
    await talk(
        "POST", CONFIG_MAPS_PATH, {"metadata": {"name": "c", "finalizers": ["example.com/a"]}, "data": {"a": "1"}}
    )

    async def patch(body: Any) -> Any:
        return await talk("PATCH", f"{CONFIG_MAPS_PATH}/c", body, content_type=STRATEGIC)

    await patch({"data": {"b": "2"}})
    await patch({"data": {"a": None}})
    await patch({"data": {"$patch": "replace", "z": "9"}})
    await patch({"data": {"$patch": "sing"}})
    await patch({"metadata": {"finalizers": ["example.com/b"]}})
    await patch({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}})
    await patch({"$retainKeys": ["data"], "data": {"q": "1"}})


async def test_patches_of_a_pod(talk: Any) -> None:
    """A bare pod nobody schedules: what of it can be changed, and what not."""
    pod = {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "c", "image": "i:1"}],
            "schedulingGates": [{"name": "example.com/wait"}],
            "automountServiceAccountToken": False,
        },
    }
    await talk("POST", PODS_PATH, pod)
    await talk(
        "PATCH", f"{PODS_PATH}/p", {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}, content_type=STRATEGIC
    )
    await talk(
        "PATCH", f"{PODS_PATH}/p", {"spec": {"containers": [{"name": "c", "command": ["x"]}]}}, content_type=STRATEGIC
    )
    await talk("PATCH", f"{PODS_PATH}/p", {"spec": {"hostname": "h"}}, content_type=STRATEGIC)
    await talk("PATCH", f"{PODS_PATH}/p/status", {"status": {"phase": "Running"}}, content_type=MERGE)
    await talk(
        "PATCH",
        f"{PODS_PATH}/p/status",
        {"status": {"conditions": [{"type": "Mine", "status": "True"}]}},
        content_type=STRATEGIC,
    )
    await talk("PATCH", f"{PODS_PATH}/p", {"metadata": {"labels": {"a": "b"}}}, content_type=STRATEGIC)
