"""Server-side apply, example by example: ownership, conflicts, removal, lists, kubectl's habits."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch import apply_patch, track_update

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
DEPLOYMENT = {"schema": None, "group_kind": ("apps", "Deployment"), "api_version": "apps/v1", "subresource": ""}
SERVICE = {"schema": None, "group_kind": ("", "Service"), "api_version": "v1", "subresource": ""}
THING_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "args": {"type": "array", "items": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "steps": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "image": {"type": "string"},
                            "n": {"type": "integer"},
                        },
                    },
                },
            },
        }
    },
}
THING = {
    "schema": THING_SCHEMA,
    "group_kind": ("example.io", "Thing"),
    "api_version": "example.io/v1",
    "subresource": "",
}


def thing(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def apply(
    live: Any, applied: Any, manager: str = "one", *, force: bool = False, now: str = NOW, kind: Any = THING
) -> dict[str, Any]:
    before = copy.deepcopy((live, applied))
    out = apply_patch(live, applied, manager=manager, force=force, now=now, **kind)
    assert (live, applied) == before, "inputs are not changed"
    return out


def owned(obj: Any, manager: str) -> Any:
    return next(entry["fieldsV1"] for entry in obj["metadata"]["managedFields"] if entry["manager"] == manager)


def managers(obj: Any) -> list[str]:
    return [entry["manager"] for entry in obj["metadata"].get("managedFields", [])]


def test_create_owns_leaves_keys_and_items_but_no_structs() -> None:
    obj = apply(None, thing(size=1, labels={"a": "b"}, tags=["x"], steps=[{"name": "s", "n": 1}], args=["q"]))
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "example.io/v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    "f:size": {},
                    "f:labels": {"f:a": {}},
                    "f:tags": {'v:"x"': {}},
                    "f:steps": {'k:{"name":"s"}': {".": {}, "f:name": {}, "f:n": {}}},
                    "f:args": {},
                }
            },
        }
    ]


def test_the_same_apply_changes_nothing_not_even_the_time() -> None:
    live = apply(None, thing(size=1))
    assert apply(live, thing(size=1), now=LATER) == live


def test_a_dropped_field_is_removed_and_an_unmentioned_foreign_one_stays() -> None:
    live = apply(None, thing(size=1, labels={"a": "1", "b": "2"}))
    live = apply(live, thing(labels={"c": "3"}), "two")
    live = apply(live, thing(labels={"a": "1"}), now=LATER)
    assert live["spec"] == {"labels": {"a": "1", "c": "3"}}


def test_a_field_of_two_owners_survives_until_both_drop_it() -> None:
    live = apply(apply(None, thing(size=1)), thing(size=1), "two")
    bare = {key: value for key, value in thing().items() if key != "spec"}
    live = apply(live, bare)
    assert live["spec"] == {"size": 1}
    assert managers(live) == ["two"]
    assert "spec" not in apply(live, bare, "two")


def test_a_conflict_names_manager_and_field() -> None:
    live = apply(None, thing(size=1))
    with pytest.raises(ApiError) as caught:
        apply(live, thing(size=2), "two")
    assert caught.value.code == 409
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .spec.size'
    assert caught.value.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.size"}
    ]


def test_conflicts_with_an_updater_name_its_version_and_are_grouped() -> None:
    live = track_update(None, thing(size=1, args=["a"]), manager="kubectl-create", now=NOW, **THING)
    live = apply(live, thing(labels={"x": "y"}), "three")
    with pytest.raises(ApiError) as caught:
        apply(live, thing(size=2, args=["b"], labels={"x": "z"}), "two")
    assert caught.value.message == (
        'Apply failed with 3 conflicts: conflicts with "kubectl-create" using example.io/v1:\n'
        '- .spec.args\n- .spec.size\nconflicts with "three":\n- .spec.labels.x'
    )
    assert len(caught.value.causes) == 3


def test_a_conflict_in_a_list_item_names_its_key() -> None:
    live = apply(None, thing(steps=[{"name": "s", "image": "a"}], tags=["x"]))
    with pytest.raises(ApiError, match=r'\.spec\.steps\[name="s"\]\.image$'):
        apply(live, thing(steps=[{"name": "s", "image": "b"}]), "two")


def test_force_takes_ownership_away() -> None:
    live = apply(apply(None, thing(size=1, args=["a"])), thing(size=2), "two", force=True, now=LATER)
    assert live["spec"] == {"size": 2, "args": ["a"]}
    assert owned(live, "one") == {"f:spec": {"f:args": {}}}
    assert owned(live, "two") == {"f:spec": {"f:size": {}}}


def test_sets_keep_foreign_elements_and_lose_dropped_ones() -> None:
    live = apply(None, thing(tags=["a", "b"]))
    live = apply(live, thing(tags=["c"]), "two")
    live = apply(live, thing(tags=["b"]))
    assert sorted(live["spec"]["tags"]) == ["b", "c"]


def test_list_items_are_merged_by_key_in_the_applied_order() -> None:
    live = apply(None, thing(steps=[{"name": "a", "n": 1}, {"name": "b"}]))
    live = apply(live, thing(steps=[{"name": "c"}, {"name": "a", "image": "i"}]), "two")
    assert [step["name"] for step in live["spec"]["steps"]] == ["c", "a", "b"]
    assert live["spec"]["steps"][1] == {"name": "a", "n": 1, "image": "i"}


def test_atomic_lists_and_maps_are_replaced_and_owned_as_one() -> None:
    live = apply(None, thing(args=["a"], whole={"x": "1"}))
    live = apply(live, thing(args=["b"], whole={"y": "2"}))
    assert live["spec"] == {"args": ["b"], "whole": {"y": "2"}}
    assert owned(live, "one") == {"f:spec": {"f:args": {}, "f:whole": {}}}


def test_an_empty_map_is_owned_as_such() -> None:
    live = apply(None, thing(labels={}))
    assert owned(live, "one") == {"f:spec": {"f:labels": {}}}
    live = apply(live, thing(labels={"a": "b"}), "two")
    assert live["spec"]["labels"] == {"a": "b"}
    live = apply(live, thing(labels={}), "two")
    assert live["spec"]["labels"] == {}


def test_schemaless_parts_are_granular_maps_and_atomic_lists() -> None:
    live = apply(None, thing(free={"a": {"b": 1}, "l": [1, 2]}))
    assert owned(live, "one") == {"f:spec": {"f:free": {"f:a": {".": {}, "f:b": {}}, "f:l": {}}}}


def test_status_and_main_resource_are_separate_managers() -> None:
    status = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "status": {"phase": "Ready"}}
    live = apply(None, thing(size=1))
    live = apply(live, status, kind={**THING, "subresource": "status"}, now=LATER)
    assert [(e["manager"], e.get("subresource")) for e in live["metadata"]["managedFields"]] == [
        ("one", None),
        ("one", "status"),
    ]
    assert apply(live, thing(size=1), now=LATER)["status"] == {"phase": "Ready"}


def test_kubectls_second_apply_of_the_annotation_alone_does_not_wipe_the_spec() -> None:
    """kubectl apply, then kubectl apply --server-side: the annotation is applied once more as kubectl-last-applied."""
    note = "kubectl.kubernetes.io/last-applied-configuration"
    config = thing(size=1, args=["a"])
    first = copy.deepcopy(config)
    first["metadata"]["annotations"] = {note: json.dumps(config) + "\n"}
    live = track_update(None, first, manager="kubectl-client-side-apply", now=NOW, **THING)
    live = apply(live, thing(size=2, args=["a"]), "kubectl", now=LATER)
    only = {"apiVersion": "example.io/v1", "kind": "Thing"}
    only["metadata"] = {"name": "t", "annotations": {note: live["metadata"]["annotations"][note]}}
    live = apply(live, only, "kubectl-last-applied", now=LATER)
    assert live["spec"] == {"size": 2, "args": ["a"]}
    assert json.loads(live["metadata"]["annotations"][note])["spec"]["size"] == 2
    assert owned(live, "kubectl-last-applied") == {"f:metadata": {"f:annotations": {f"f:{note}": {}}}}


def test_only_kubectl_takes_over_from_client_side_apply_without_force() -> None:
    note = "kubectl.kubernetes.io/last-applied-configuration"
    config = thing(size=1)
    first = copy.deepcopy(config)
    first["metadata"]["annotations"] = {note: json.dumps(config)}
    live = track_update(None, first, manager="kubectl-client-side-apply", now=NOW, **THING)
    with pytest.raises(ApiError, match=r'"kubectl-client-side-apply" using example.io/v1: .spec.size'):
        apply(live, thing(size=2), "other")
    changed = track_update(live, {**live, "spec": {"size": 7}}, manager="editor", now=LATER, **THING)
    with pytest.raises(ApiError, match=r'"editor" using example.io/v1: \.spec\.size'):
        apply(changed, thing(size=2), "kubectl")


def test_an_object_without_managed_fields_belongs_to_before_first_apply() -> None:
    live = {**thing(size=1), "metadata": {"name": "t", "uid": "u"}}
    with pytest.raises(ApiError, match=r'"before-first-apply" using example.io/v1: \.spec\.size'):
        apply(live, thing(size=2))
    assert managers(apply(live, thing(size=1))) == ["one", "before-first-apply"]


def test_managed_fields_and_foreign_versions_are_refused() -> None:
    body = thing()
    body["metadata"]["managedFields"] = []
    with pytest.raises(ApiError, match="must be nil") as caught:
        apply(None, body)
    assert caught.value.code == 400
    with pytest.raises(ApiError, match=r"Specified patch version: example.io/v2, expected: example.io/v1"):
        apply(None, {**thing(), "apiVersion": "example.io/v2"})


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([{"image": "a"}], "element 0: associative list with keys has an element that omits all key fields"),
        ([{"name": "a"}, {"name": "a"}], r'duplicate entries for key \[name="a"\]'),
        ([None], "may not have a null element"),
    ],
)
def test_malformed_list_items_are_refused(steps: Any, words: str) -> None:
    for live in (None, apply(None, thing(steps=[{"name": "z"}]))):
        with pytest.raises(ApiError, match=words):
            apply(live, thing(steps=steps))


def deployment(**container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", **container}]}}},
    }


def test_a_port_is_number_and_protocol_so_a_new_number_is_a_new_port() -> None:
    """kubernetes#118725: only the own old port goes away; one that somebody else owns too stays beside the new one."""

    def ports(obj: Any) -> Any:
        return obj["spec"]["template"]["spec"]["containers"][0]["ports"]

    one = deployment(ports=[{"containerPort": 80, "name": "http"}])
    live = apply(None, one, kind=DEPLOYMENT)
    assert 'k:{"containerPort":80,"protocol":"TCP"}' in json.dumps(owned(live, "one")).replace('\\"', '"')
    other = deployment(ports=[{"containerPort": 81, "name": "http"}])
    assert ports(apply(live, other, kind=DEPLOYMENT)) == [{"containerPort": 81, "name": "http"}]
    shared = apply(live, one, "two", kind=DEPLOYMENT)
    assert [port["containerPort"] for port in ports(apply(shared, other, kind=DEPLOYMENT))] == [80, 81]


def test_a_server_default_for_the_protocol_is_the_same_port() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}},
    }
    live = apply(None, body, kind=SERVICE)
    live["spec"]["ports"][0] |= {"protocol": "TCP", "targetPort": 80}
    again = apply(live, body, kind=SERVICE, now=LATER)
    assert again == live
    changed = copy.deepcopy(body)
    changed["spec"]["ports"][0]["port"] = 81
    assert apply(live, changed, kind=SERVICE)["spec"]["ports"] == [{"port": 81}]


def test_owner_references_are_keyed_and_atomic() -> None:
    body = deployment(image="i")
    body["metadata"]["ownerReferences"] = [{"uid": "u1", "kind": "K", "name": "n", "apiVersion": "v1"}]
    live = apply(None, body, kind=DEPLOYMENT)
    assert owned(live, "one")["f:metadata"] == {"f:ownerReferences": {'k:{"uid":"u1"}': {}}}


def test_a_manifests_null_creation_timestamp_does_not_take_the_real_one_away() -> None:
    live = apply(None, thing(size=1))
    live["metadata"] |= {"creationTimestamp": NOW, "uid": "u", "generation": 1}
    body = thing(size=1)
    body["metadata"]["creationTimestamp"] = None
    assert apply(live, body, now=LATER) == live


def test_a_sidecar_from_another_manager_keeps_its_place_and_its_owner() -> None:
    live = apply(None, deployment(image="app:1"), kind=DEPLOYMENT)
    sidecar = deployment(image="proxy:1")
    sidecar["spec"]["template"]["spec"]["containers"][0]["name"] = "proxy"
    live = apply(live, sidecar, "mesh", kind=DEPLOYMENT)
    live = apply(live, deployment(image="app:2"), kind=DEPLOYMENT, now=LATER)
    containers = live["spec"]["template"]["spec"]["containers"]
    assert {each["name"]: each["image"] for each in containers} == {"c": "app:2", "proxy": "proxy:1"}
    live = apply(live, {key: value for key, value in sidecar.items() if key != "spec"}, "mesh", kind=DEPLOYMENT)
    assert [each["name"] for each in live["spec"]["template"]["spec"]["containers"]] == ["c"]
