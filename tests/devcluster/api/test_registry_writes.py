"""Create, update, status and no-op rules of the registry."""

from __future__ import annotations

from typing import Any

import pytest

from gryvia_devcluster.api.options import WriteOptions
from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.clock import VirtualClock
from gryvia_devcluster.errors import ApiError

Json = dict[str, Any]
MERGE: Any = "application/merge-patch+json"
APPLY: Any = "application/apply-patch+yaml"


def widget(name: str, **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"size": 1, **spec}}


@pytest.fixture
def make(api: Registry) -> Any:
    rt = api.resource("example.com", "widgets")

    def create(name: str = "a", **spec: Any) -> Json:
        return api.create(rt, "default", widget(name, **spec))

    return create


def patch(api: Registry, body: Json, *, name: str = "a", subresource: Any = "") -> Json:
    rt = api.resource("example.com", "widgets")
    return api.patch(rt, "default", name, body, MERGE, subresource=subresource)


def test_a_created_object_has_what_the_server_gives(make: Any) -> None:
    obj = make()
    meta = obj["metadata"]
    assert meta["uid"]
    assert meta["generation"] == 1
    assert meta["creationTimestamp"] == "2030-01-01T00:00:00Z"
    assert int(meta["resourceVersion"]) > 0
    assert obj["spec"] == {"size": 1, "color": "red"}
    assert meta["managedFields"][0]["manager"] == "devcluster"


def test_generate_name_makes_distinct_names(api: Registry) -> None:
    rt = api.resource("", "configmaps")
    names = {api.create(rt, "default", {"metadata": {"generateName": "x-"}})["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("x-") and len(name) == 7 for name in names)


def test_only_a_change_of_spec_moves_the_generation(api: Registry, make: Any) -> None:
    make()
    assert patch(api, {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert patch(api, {"status": {"phase": "X"}}, subresource="status")["metadata"]["generation"] == 1
    assert patch(api, {"spec": {"size": 2}})["metadata"]["generation"] == 2


def test_the_main_resource_ignores_status_and_status_ignores_all_else(api: Registry, make: Any) -> None:
    make()
    assert "status" not in patch(api, {"status": {"phase": "X"}, "spec": {"size": 3}})
    obj = patch(
        api, {"status": {"phase": "Y"}, "spec": {"size": 9}, "metadata": {"labels": {"a": "b"}}}, subresource="status"
    )
    assert (obj["status"], obj["spec"]["size"], obj["metadata"].get("labels")) == ({"phase": "Y"}, 3, None)


def test_without_a_status_subresource_status_is_part_of_the_object(api: Registry) -> None:
    crds = api.resource("apiextensions.k8s.io", "customresourcedefinitions")
    definition = api.get(crds, None, "widgets.example.com")
    names = {"plural": "plains", "kind": "Plain"}
    versions = [{**definition["spec"]["versions"][0], "subresources": None}]
    spec = {**definition["spec"], "names": names, "versions": versions}
    api.create(crds, None, {"metadata": {"name": "plains.example.com"}, "spec": spec})
    rt = api.resource("example.com", "plains")
    obj = api.create(rt, "default", {"metadata": {"name": "a"}, "spec": {"size": 1}, "status": {"phase": "X"}})
    assert obj["status"] == {"phase": "X"}
    changed = api.patch(rt, "default", "a", {"status": {"phase": "Y"}}, MERGE)
    assert changed["metadata"]["generation"] == 2
    with pytest.raises(ApiError) as refused:
        api.patch(rt, "default", "a", {"status": {"phase": "Z"}}, MERGE, subresource="status")
    assert refused.value.code == 404


def test_a_write_that_changes_nothing_keeps_the_version(api: Registry, make: Any) -> None:
    before = make()
    version = api.store.rv
    rt = api.resource("example.com", "widgets")
    assert patch(api, {"spec": {"size": 1}}) == before
    assert api.update(rt, "default", "a", before, manager="someone") == before
    assert api.store.rv == version


def test_an_old_resource_version_is_a_conflict(api: Registry, make: Any) -> None:
    old = make()
    patch(api, {"spec": {"size": 2}})
    with pytest.raises(ApiError, match="the object has been modified; please apply your changes") as refused:
        api.update(api.resource("example.com", "widgets"), "default", "a", {**old, "spec": {"size": 5}})
    assert (refused.value.reason, refused.value.code) == ("Conflict", 409)


def test_another_uid_is_a_conflict_in_an_update_and_invalid_in_a_patch(api: Registry, make: Any) -> None:
    made = make()
    with pytest.raises(ApiError, match=r'metadata\.uid: Invalid value: "other": field is immutable'):
        patch(api, {"metadata": {"uid": "other"}, "spec": {"size": 2}})
    other = {**made, "metadata": {**made["metadata"], "uid": "other"}}
    with pytest.raises(ApiError, match="Precondition failed: UID in precondition: other"):
        api.update(api.resource("example.com", "widgets"), "default", "a", other)


def test_an_update_cannot_change_what_the_server_owns(api: Registry, make: Any) -> None:
    before = make()
    meta = {"creationTimestamp": "2000-01-01T00:00:00Z", "generation": 77, "deletionTimestamp": "2000-01-01T00:00:00Z"}
    after = patch(api, {"metadata": meta, "spec": {"size": 2}})["metadata"]
    assert after["creationTimestamp"] == before["metadata"]["creationTimestamp"]
    assert after["generation"] == 2
    assert "deletionTimestamp" not in after


def test_what_was_passed_in_is_not_what_is_stored(api: Registry) -> None:
    rt = api.resource("example.com", "widgets")
    mine = widget("a", tags=["x"])
    api.create(rt, "default", mine)
    mine["spec"]["tags"].append("y")
    assert api.get(rt, "default", "a")["spec"]["tags"] == ["x"]
    assert "uid" not in mine["metadata"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({"size": 1, "color": "green"}, 'spec.color: Unsupported value: "green": supported values: "blue", "red"'),
        ({}, "spec.size: Required value"),
    ],
)
def test_the_schema_refuses_with_the_field_and_the_reason(api: Registry, spec: Json, message: str) -> None:
    rt = api.resource("example.com", "widgets")
    with pytest.raises(ApiError) as refused:
        api.create(rt, "default", {"metadata": {"name": "a"}, "spec": spec})
    status = refused.value.status()
    assert status["code"] == 422
    assert status["details"]["kind"] == "Widget"
    field, _, body = message.partition(": ")
    assert status["message"].startswith(f'Widget.example.com "a" is invalid: {field}: {body.split(":")[0]}')
    assert status["details"]["causes"][0]["field"] == field


def test_strict_field_validation_names_unknown_fields_and_warn_only_warns(api: Registry) -> None:
    rt = api.resource("example.com", "widgets")
    with pytest.raises(ApiError, match=r'strict decoding error: unknown field "spec\.foo"') as refused:
        api.create(rt, "default", widget("a", foo=1), options=WriteOptions(field_validation="Strict"))
    assert refused.value.code == 400
    options = WriteOptions(field_validation="Warn")
    assert "foo" not in api.create(rt, "default", widget("a", foo=1), options=options)["spec"]
    assert options.warnings == ['unknown field "spec.foo"']


def test_a_dry_run_answers_and_stores_nothing(api: Registry, make: Any) -> None:
    rt = api.resource("example.com", "widgets")
    version = api.store.rv
    options = WriteOptions(dry_run=True)
    assert api.create(rt, "default", widget("a"), options=options)["metadata"]["uid"]
    assert api.store.rv == version
    make()
    assert api.patch(rt, "default", "a", {"spec": {"size": 5}}, MERGE, options=options)["spec"]["size"] == 5
    api.delete(rt, "default", "a", dry_run=True)
    assert api.get(rt, "default", "a")["spec"]["size"] == 1


def test_a_name_can_be_taken_once(api: Registry, make: Any) -> None:
    make()
    with pytest.raises(ApiError, match=r'widgets\.example\.com "a" already exists') as refused:
        make()
    assert refused.value.reason == "AlreadyExists"


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a" * 254, "a..b", ""])
def test_names_follow_dns(api: Registry, name: str) -> None:
    with pytest.raises(ApiError) as refused:
        api.create(api.resource("example.com", "widgets"), "default", widget(name))
    assert refused.value.causes[0]["field"] == "metadata.name"


def test_nothing_is_created_in_a_namespace_that_is_not_there_or_is_going(api: Registry) -> None:
    rt = api.resource("", "configmaps")
    with pytest.raises(ApiError, match='namespaces "nowhere" not found') as refused:
        api.create(rt, "nowhere", {"metadata": {"name": "a"}})
    assert refused.value.code == 404
    namespaces = api.resource("", "namespaces")
    api.create(namespaces, None, {"metadata": {"name": "going"}})
    assert api.delete(namespaces, None, "going")["status"]["phase"] == "Terminating"
    with pytest.raises(ApiError, match="because it is being terminated") as refused:
        api.create(rt, "going", {"metadata": {"name": "a"}})
    assert refused.value.code == 403
    assert refused.value.causes[0]["reason"] == "NamespaceTerminating"


def test_apply_owns_fields_and_conflicts_with_other_owners(api: Registry) -> None:
    rt = api.resource("example.com", "widgets")
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a"},
        "spec": {"size": 1, "replicas": 2},
    }
    api.patch(rt, "default", "a", body, APPLY, manager="one")
    other = {**body, "spec": {"size": 2}}
    with pytest.raises(ApiError, match=r'conflict with "one": \.spec\.size') as refused:
        api.patch(rt, "default", "a", other, APPLY, manager="two")
    assert refused.value.causes[0]["reason"] == "FieldManagerConflict"
    assert api.patch(rt, "default", "a", other, APPLY, manager="two", force=True)["spec"]["size"] == 2
    api.patch(rt, "default", "a", {**body, "spec": {"size": 2}}, APPLY, manager="one")
    assert "replicas" not in api.get(rt, "default", "a")["spec"]


def test_an_apply_that_changes_nothing_keeps_the_version(api: Registry, clock: VirtualClock) -> None:
    rt = api.resource("example.com", "widgets")
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
    first = api.patch(rt, "default", "a", body, APPLY, manager="one")
    assert api.patch(rt, "default", "a", body, APPLY, manager="one") == first


def test_apply_creates_a_status_only_through_the_subresource(api: Registry) -> None:
    rt = api.resource("example.com", "widgets")
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
    with_status = {**body, "status": {"phase": "X"}}
    assert "status" not in api.patch(rt, "default", "a", with_status, APPLY, manager="one")
    obj = api.patch(rt, "default", "a", with_status, APPLY, manager="one", subresource="status")
    assert obj["status"] == {"phase": "X"}
    assert {entry.get("subresource") for entry in obj["metadata"]["managedFields"]} == {None, "status"}


def test_the_scale_subresource_writes_the_replicas_alone(api: Registry, make: Any) -> None:
    make(replicas=1)
    scale = {"spec": {"replicas": 5}}
    assert patch(api, scale, subresource="scale")["spec"]["replicas"] == 5


def test_events_that_repeat_only_raise_the_count(api: Registry, make: Any, clock: VirtualClock) -> None:
    obj = make()
    for _ in range(3):
        api.record_event(obj, type="Normal", reason="Did", message="it", component="test")
    api.record_event(obj, type="Normal", reason="Did", message="other", component="test")
    events, _ = api.list(api.resource("", "events"), "default", fields=f"involvedObject.uid={obj['metadata']['uid']}")
    assert sorted((e["message"], e["count"]) for e in events) == [("it", 3), ("other", 1)]


async def test_events_repeat_within_ten_minutes_only(api: Registry, make: Any, clock: VirtualClock) -> None:
    obj = make()
    api.record_event(obj, type="Normal", reason="Did", message="it", component="test")
    await clock.advance(601)
    api.record_event(obj, type="Normal", reason="Did", message="it", component="test")
    assert [event["count"] for event in api.list(api.resource("", "events"))[0]] == [1, 1]


def test_an_admission_hook_fills_in_and_refuses(api: Registry) -> None:
    def hook(operation: str, rt: Any, new: Json, old: Json | None) -> None:
        if operation == "CREATE":
            new.setdefault("data", {})["from"] = "hook"
        if operation == "DELETE":
            raise ApiError("Forbidden", "kept")

    rt = api.resource("", "configmaps")
    api.add_hook("configmaps", hook)
    assert api.create(rt, "default", {"metadata": {"name": "a"}})["data"] == {"from": "hook"}
    with pytest.raises(ApiError, match="kept"):
        api.delete(rt, "default", "a")
