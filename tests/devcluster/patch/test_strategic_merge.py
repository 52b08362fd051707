"""Strategic merge patch: lists with keys, directives, the order of merged lists."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch import strategic_merge_patch

POD, DEPLOYMENT, SERVICE, JOB = ("", "Pod"), ("apps", "Deployment"), ("", "Service"), ("batch", "Job")


def patched(obj: Any, patch: Any, kind: tuple[str, str] = POD) -> Any:
    before = copy.deepcopy((obj, patch))
    out = strategic_merge_patch(obj, patch, kind)
    assert (obj, patch) == before, "inputs are not changed"
    return out


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


@pytest.mark.parametrize(
    ("field", "key", "extra"),
    [
        ("containers", "name", {"image": "i"}),
        ("initContainers", "name", {"image": "i"}),
        ("volumes", "name", {"emptyDir": {}}),
        ("hostAliases", "ip", {"hostnames": ["h"]}),
        ("imagePullSecrets", "name", {}),
        ("topologySpreadConstraints", "topologyKey", {"maxSkew": 1}),
    ],
)
def test_items_are_merged_by_the_lists_key(field: str, key: str, extra: dict[str, Any]) -> None:
    live = spec(**{field: [{key: "a", "kept": 1}, {key: "b"}]})
    out = patched(live, spec(**{field: [{key: "a", **extra}]}))
    assert out["spec"][field] == [{key: "a", "kept": 1, **extra}, {key: "b"}]


def test_lists_inside_containers_have_their_own_keys() -> None:
    live = spec(
        containers=[
            {
                "name": "c",
                "env": [{"name": "A", "value": "1"}],
                "ports": [{"containerPort": 80, "name": "x"}],
                "volumeMounts": [{"mountPath": "/a", "name": "v"}],
                "args": ["1", "2"],
            }
        ]
    )
    patch = spec(
        containers=[
            {
                "name": "c",
                "env": [{"name": "A", "value": "2"}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "volumeMounts": [{"mountPath": "/a", "readOnly": True}],
                "args": ["3"],
            }
        ]
    )
    assert patched(live, patch)["spec"]["containers"] == [
        {
            "name": "c",
            "env": [{"name": "A", "value": "2"}],
            "ports": [{"containerPort": 80, "name": "x", "protocol": "TCP"}],
            "volumeMounts": [{"mountPath": "/a", "name": "v", "readOnly": True}],
            "args": ["3"],
        }
    ]


def test_service_ports_are_merged_by_port() -> None:
    live = spec(ports=[{"port": 80, "name": "http"}])
    assert patched(live, spec(ports=[{"port": 80, "targetPort": 8080}]), SERVICE) == spec(
        ports=[{"port": 80, "name": "http", "targetPort": 8080}]
    )


def test_tolerations_are_replaced() -> None:
    live = spec(tolerations=[{"key": "a"}])
    assert patched(live, spec(tolerations=[{"key": "b"}])) == spec(tolerations=[{"key": "b"}])


def test_conditions_are_merged_by_type_even_where_apply_takes_them_as_one() -> None:
    live = {"status": {"conditions": [{"type": "Complete", "status": "False"}, {"type": "Suspended"}]}}
    out = patched(live, {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, JOB)
    assert out["status"]["conditions"] == [{"type": "Complete", "status": "True"}, {"type": "Suspended"}]


def test_finalizers_are_a_set() -> None:
    live = {"metadata": {"finalizers": ["a", "b"]}}
    assert patched(live, {"metadata": {"finalizers": ["c", "a"]}})["metadata"]["finalizers"] == ["c", "a", "b"]
    gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert patched(live, gone)["metadata"]["finalizers"] == ["b"]


def test_null_removes_and_nulls_never_stay() -> None:
    assert patched(spec(a=1, b=2), spec(a=None, c={"d": None, "e": 1})) == spec(b=2, c={"e": 1})


def test_a_new_item_comes_before_the_live_ones() -> None:
    live = spec(containers=[{"name": "a"}, {"name": "b"}])
    out = patched(live, spec(containers=[{"name": "sidecar"}]))
    assert [each["name"] for each in out["spec"]["containers"]] == ["sidecar", "a", "b"]


def test_set_element_order_reorders_also_without_items() -> None:
    live = spec(containers=[{"name": "a"}, {"name": "b"}, {"name": "c"}])
    order = {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}
    out = patched(live, {"spec": order})
    assert [each["name"] for each in out["spec"]["containers"]] == ["b", "c", "a"]


def test_delete_directive_removes_an_item() -> None:
    live = spec(containers=[{"name": "a"}, {"name": "b"}])
    assert patched(live, spec(containers=[{"name": "a", "$patch": "delete"}])) == spec(containers=[{"name": "b"}])


def test_replace_directives() -> None:
    live = spec(containers=[{"name": "a"}], securityContext={"runAsUser": 1, "fsGroup": 2})
    out = patched(live, spec(containers=[{"$patch": "replace"}, {"name": "z"}], securityContext={"$patch": "replace"}))
    assert out == spec(containers=[{"name": "z"}], securityContext={})
    assert patched(live, spec(securityContext={"$patch": "delete"}))["spec"]["securityContext"] == {}


def test_retain_keys_clears_the_other_members_of_a_union() -> None:
    live = spec(volumes=[{"name": "v", "emptyDir": {}}])
    patch = spec(volumes=[{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}])
    assert patched(live, patch) == spec(volumes=[{"name": "v", "configMap": {"name": "c"}}])
    strategy = spec(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}})
    recreate = spec(strategy={"$retainKeys": ["type"], "type": "Recreate"})
    assert patched(strategy, recreate, DEPLOYMENT) == spec(strategy={"type": "Recreate"})


@pytest.mark.parametrize(
    ("patch", "reason", "words"),
    [
        ([], "BadRequest", "cannot unmarshal"),
        (
            spec(containers=[{"image": "x"}]),
            "",
            r"map\[image:x\] does not contain declared merge key: name",
        ),
        (spec(containers=[{"name": "x", "$patch": "zap"}]), "", r"unknown patch type: zap in map: map"),
        ({"spec": {"$patch": "zap"}}, "", "unknown patch type: zap"),
        ({"spec": {"$retainKeys": "a"}}, "BadRequest", "invalid patch format of retainKeys"),
        ({"spec": {"$setElementOrder/containers": "a", "containers": []}}, "BadRequest", "setElementOrder list"),
        (
            {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "z"}]}},
            "",
            r"The order in patch list:\n\[map\[name:z\]\]\n doesn't match \$setElementOrder list:\n\[map\[name:a\]\]\n",
        ),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": 1}}, "BadRequest", "primitive list"),
    ],
)
def test_malformed_patches_are_refused(patch: Any, reason: str, words: str) -> None:
    with pytest.raises(ApiError, match=words) as caught:
        patched(spec(containers=[{"name": "a"}]), patch)
    assert caught.value.reason == reason
