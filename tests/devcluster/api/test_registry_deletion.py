"""Deletion: finalizers, graceful pods, namespaces, CRDs, preconditions."""

from __future__ import annotations

from typing import Any

import pytest

from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.errors import ApiError

Json = dict[str, Any]
MERGE: Any = "application/merge-patch+json"


def exists(api: Registry, group: str, plural: str, name: str, namespace: str | None = "default") -> bool:
    try:
        api.get(api.resource(group, plural), namespace, name)
    except ApiError as error:
        if error.reason != "NotFound":
            raise
        return False
    return True


def make_widget(api: Registry, **meta: Any) -> Json:
    rt = api.resource("example.com", "widgets")
    return api.create(rt, "default", {"metadata": {"name": "a", **meta}, "spec": {"size": 1}})


def make_pod(api: Registry, **spec: Any) -> Json:
    container = {"name": "c", "image": "x:1"}
    body = {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}
    return api.create(api.resource("", "pods"), "default", body)


def test_a_finalizer_keeps_the_object_until_it_is_taken_away(api: Registry) -> None:
    make_widget(api, finalizers=["example.com/x"])
    rt = api.resource("example.com", "widgets")
    marked = api.delete(rt, "default", "a")
    assert marked["metadata"]["deletionTimestamp"]
    version = api.store.rv
    api.delete(rt, "default", "a")
    assert api.store.rv == version
    api.patch(rt, "default", "a", {"metadata": {"finalizers": None}}, MERGE)
    assert not exists(api, "example.com", "widgets", "a")


def test_no_finalizer_can_be_added_to_what_is_being_deleted(api: Registry) -> None:
    make_widget(api, finalizers=["example.com/x"])
    rt = api.resource("example.com", "widgets")
    api.delete(rt, "default", "a")
    with pytest.raises(ApiError, match="no new finalizers can be added if the object is being deleted"):
        api.patch(rt, "default", "a", {"metadata": {"finalizers": ["example.com/x", "example.com/y"]}}, MERGE)


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_a_policy_other_than_background_waits_for_the_garbage_collector(
    api: Registry, policy: Any, finalizer: str
) -> None:
    make_widget(api)
    marked = api.delete(api.resource("example.com", "widgets"), "default", "a", propagation=policy)
    assert marked["metadata"]["finalizers"] == [finalizer]
    assert exists(api, "example.com", "widgets", "a")


def test_preconditions_protect_a_successor_of_the_same_name(api: Registry) -> None:
    obj = make_widget(api)
    rt = api.resource("example.com", "widgets")
    for wrong in ({"uid": "other"}, {"resource_version": "1"}):
        with pytest.raises(ApiError, match="in the precondition") as refused:
            api.delete(rt, "default", "a", **wrong)
        assert refused.value.reason == "Conflict"
    meta = obj["metadata"]
    api.delete(rt, "default", "a", uid=meta["uid"], resource_version=meta["resourceVersion"])
    assert not exists(api, "example.com", "widgets", "a")


def test_a_pod_that_is_not_bound_goes_at_once(api: Registry) -> None:
    make_pod(api)
    api.delete(api.resource("", "pods"), "default", "p")
    assert not exists(api, "", "pods", "p")


def test_a_running_pod_is_marked_with_the_end_of_its_grace(api: Registry) -> None:
    rt = api.resource("", "pods")
    make_pod(api, terminationGracePeriodSeconds=20)
    api.patch(rt, "default", "p", {"spec": {"nodeName": "n"}}, MERGE)
    meta = api.delete(rt, "default", "p")["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2030-01-01T00:00:20Z", 20)
    shorter = api.delete(rt, "default", "p", grace_seconds=5)["metadata"]
    assert (shorter["deletionTimestamp"], shorter["deletionGracePeriodSeconds"]) == ("2030-01-01T00:00:05Z", 5)
    api.patch(rt, "default", "p", {"status": {"phase": "Succeeded"}}, MERGE, subresource="status")
    assert exists(api, "", "pods", "p")
    api.delete(rt, "default", "p", grace_seconds=0)
    assert not exists(api, "", "pods", "p")


def test_a_namespace_waits_for_its_controller_and_takes_leftovers_along(api: Registry) -> None:
    namespaces, events = api.resource("", "namespaces"), api.resource("", "events")
    api.create(namespaces, None, {"metadata": {"name": "n"}})
    api.create(events, "n", {"metadata": {"name": "e"}, "involvedObject": {}})
    api.delete(namespaces, None, "n")
    assert exists(api, "", "namespaces", "n", None)
    api.patch(namespaces, None, "n", {"spec": {"finalizers": None}}, MERGE)
    assert not exists(api, "", "namespaces", "n", None)
    assert api.list(events, "n")[0] == []


def test_default_namespaces_stay(api: Registry) -> None:
    with pytest.raises(ApiError, match="this namespace may not be deleted"):
        api.delete(api.resource("", "namespaces"), None, "default")


def test_a_crd_takes_its_objects_along(api: Registry) -> None:
    make_widget(api)
    api.delete(api.resource("apiextensions.k8s.io", "customresourcedefinitions"), None, "widgets.example.com")
    assert not exists(api, "apiextensions.k8s.io", "customresourcedefinitions", "widgets.example.com", None)
    with pytest.raises(ApiError) as refused:
        api.resource("example.com", "widgets")
    assert refused.value.code == 404


def test_a_crd_waits_for_objects_that_have_finalizers(api: Registry) -> None:
    make_widget(api, finalizers=["example.com/x"])
    crds = api.resource("apiextensions.k8s.io", "customresourcedefinitions")
    api.delete(crds, None, "widgets.example.com")
    assert api.get(crds, None, "widgets.example.com")["metadata"]["deletionTimestamp"]
    rt = api.resource("example.com", "widgets")
    assert api.get(rt, "default", "a")["metadata"]["deletionTimestamp"]
    api.patch(rt, "default", "a", {"metadata": {"finalizers": None}}, MERGE)
    assert not exists(api, "apiextensions.k8s.io", "customresourcedefinitions", "widgets.example.com", None)
