"""Objects over HTTP: verbs, subresources, patches, forms, limits and tokens."""

from __future__ import annotations

from typing import Any

import pytest

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1, **spec}}


async def test_the_life_of_an_object(client: Any) -> None:
    code, created = await client("POST", WIDGETS, widget("a"))
    assert code == 201
    assert await client("GET", f"{WIDGETS}/a") == (200, created)
    created["spec"]["size"] = 4
    updated = await client.ok("PUT", f"{WIDGETS}/a", created)
    assert updated["spec"]["size"] == 4
    code, stale = await client("PUT", f"{WIDGETS}/a", {**created, "spec": {"size": 5}})
    assert (code, stale["reason"], stale["kind"]) == (409, "Conflict", "Status")
    gone = await client.ok("DELETE", f"{WIDGETS}/a")
    assert (gone["status"], gone["details"]["uid"]) == ("Success", created["metadata"]["uid"])
    code, missing = await client("GET", f"{WIDGETS}/a")
    assert (code, missing["reason"]) == (404, "NotFound")
    assert missing["details"] == {"name": "a", "kind": "widgets", "group": "example.com"}


async def test_a_crd_is_served_at_once_and_says_so(client: Any) -> None:
    definition = await client.ok("GET", f"{CRDS}/widgets.example.com")
    conditions = {c["type"]: c["status"] for c in definition["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert definition["status"]["storedVersions"] == ["v1"]
    await client.ok("DELETE", f"{CRDS}/widgets.example.com")
    assert (await client("GET", WIDGETS))[0] == 404


async def test_a_crd_that_is_not_structural_is_refused_with_the_place(client: Any) -> None:
    definition = await client.ok("GET", f"{CRDS}/widgets.example.com")
    version = {
        **definition["spec"]["versions"][0],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"x": {}}}},
    }
    spec = {**definition["spec"], "names": {"plural": "others", "kind": "Other"}, "versions": [version]}
    code, answer = await client("POST", CRDS, {"metadata": {"name": "others.example.com"}, "spec": spec})
    assert code == 422
    fields = [cause["field"] for cause in answer["details"]["causes"]]
    assert fields == ["spec.validation.openAPIV3Schema.properties[x].type"]


async def test_two_versions_of_a_type_show_one_object(client: Any) -> None:
    definition = await client.ok("GET", f"{CRDS}/widgets.example.com")
    old = definition["spec"]["versions"][0]
    definition["spec"]["versions"] = [old, {**old, "name": "v2", "storage": False}]
    await client.ok("PUT", f"{CRDS}/widgets.example.com", definition)
    await client.ok("POST", WIDGETS.replace("v1", "v2"), {**widget("a"), "apiVersion": "example.com/v2"})
    assert (await client.ok("GET", f"{WIDGETS}/a"))["apiVersion"] == "example.com/v1"
    listed = await client.ok("GET", WIDGETS.replace("v1", "v2"))
    assert [item["apiVersion"] for item in listed["items"]] == ["example.com/v2"]


async def test_each_patch_type_does_what_it_says(client: Any) -> None:
    await client.ok("POST", WIDGETS, widget("a", tags=["x"]))
    path = f"{WIDGETS}/a"
    merged = await client.ok("PATCH", path, {"spec": {"size": 2}}, Content_Type=MERGE)
    assert merged["spec"]["size"] == 2
    steps = [{"op": "add", "path": "/spec/tags/-", "value": "y"}]
    assert (await client.ok("PATCH", path, steps, Content_Type="application/json-patch+json"))["spec"]["tags"] == [
        "x",
        "y",
    ]
    strategic = "application/strategic-merge-patch+json"
    assert (await client("PATCH", path, {}, Content_Type=strategic))[0] == 415
    applied = widget("b")
    code, _ = await client("PATCH", f"{WIDGETS}/b", applied, Content_Type="application/apply-patch+yaml")
    assert code == 422
    apply = f"{WIDGETS}/b?fieldManager=me"
    assert (await client("PATCH", apply, applied, Content_Type="application/apply-patch+yaml"))[0] == 201
    yaml = b"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: b}\nspec: {size: 7}\n"
    code, answer = await client("PATCH", apply, yaml, Content_Type="application/apply-patch+yaml")
    assert (code, answer["spec"]["size"]) == (200, 7)


async def test_strategic_merge_merges_containers_by_name(client: Any) -> None:
    labels = {"app": "x"}
    containers = [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    }
    path = "/apis/apps/v1/namespaces/default/deployments"
    await client.ok("POST", path, {"metadata": {"name": "d"}, "spec": spec})
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a:2"}]}}}}
    after = await client.ok("PATCH", f"{path}/d", patch, Content_Type="application/strategic-merge-patch+json")
    assert [c["image"] for c in after["spec"]["template"]["spec"]["containers"]] == ["a:2", "b:1"]


async def test_status_and_scale_are_subresources(client: Any) -> None:
    await client.ok("POST", WIDGETS, widget("a", replicas=2))
    status = {"status": {"phase": "Ready", "replicas": 2, "selector": "app=a"}, "spec": {"size": 99}}
    after = await client.ok("PATCH", f"{WIDGETS}/a/status", status, Content_Type=MERGE)
    assert (after["status"]["phase"], after["spec"]["size"]) == ("Ready", 1)
    scale = await client.ok("GET", f"{WIDGETS}/a/scale")
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 2},
        {"replicas": 2, "selector": "app=a"},
    )
    scale["spec"]["replicas"] = 6
    await client.ok("PUT", f"{WIDGETS}/a/scale", scale)
    assert (await client.ok("GET", f"{WIDGETS}/a"))["spec"]["replicas"] == 6
    assert (await client("GET", "/api/v1/namespaces/default/configmaps/x/status"))[0] == 404


async def test_unknown_fields_warn_by_default_and_fail_when_strict(client: Any) -> None:
    await client.ok("POST", WIDGETS, widget("a", foo=1))
    assert client.warnings == ['299 - "unknown field \\"spec.foo\\""']
    code, answer = await client("POST", f"{WIDGETS}?fieldValidation=Strict", widget("b", foo=1))
    assert (code, answer["reason"]) == (400, "BadRequest")
    assert answer["message"].endswith('strict decoding error: unknown field "spec.foo"')
    await client.ok("POST", f"{WIDGETS}?fieldValidation=Ignore", widget("c", foo=1))
    assert client.warnings == []


async def test_the_field_manager_is_named_by_the_query_or_the_user_agent(client: Any) -> None:
    named = await client.ok("POST", f"{WIDGETS}?fieldManager=me", widget("a"))
    agent = await client.ok("POST", WIDGETS, widget("b"), User_Agent="tool/1.0 (linux)")
    assert [obj["metadata"]["managedFields"][0]["manager"] for obj in (named, agent)] == ["me", "tool"]


async def test_a_table_has_the_printer_columns(client: Any) -> None:
    await client.ok("POST", WIDGETS, widget("a", size=3))
    table = await client.ok("GET", WIDGETS, Accept=TABLE)
    assert table["kind"] == "Table"
    assert [(c["name"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", 0),
        ("Phase", 0),
        ("Size", 1),
        ("Age", 0),
    ]
    row = table["rows"][0]
    assert row["cells"][:3] == ["a", None, 3]
    assert (row["object"]["kind"], row["object"]["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    assert "spec" not in row["object"]
    whole = await client.ok("GET", f"{WIDGETS}?includeObject=Object", Accept=TABLE)
    assert whole["rows"][0]["object"]["spec"]["size"] == 3


async def test_metadata_can_be_asked_for_alone(client: Any) -> None:
    await client.ok("POST", WIDGETS, widget("a"))
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listed = await client.ok("GET", WIDGETS, Accept=accept)
    assert (listed["kind"], list(listed["items"][0])) == (
        "PartialObjectMetadataList",
        ["kind", "apiVersion", "metadata"],
    )


async def test_delete_collection_deletes_what_the_selector_matches(client: Any) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        obj = widget(name)
        obj["metadata"]["labels"] = {"l": label}
        await client.ok("POST", WIDGETS, obj)
    await client.ok("DELETE", f"{WIDGETS}?labelSelector=l%3Dx")
    assert [item["metadata"]["name"] for item in (await client.ok("GET", WIDGETS))["items"]] == ["c"]


async def test_selectors_narrow_a_list(client: Any) -> None:
    for name, color in (("a", "red"), ("b", "blue")):
        await client.ok("POST", WIDGETS, widget(name, color=color))
    for query, names in (
        ("fieldSelector=metadata.name%3Da", ["a"]),
        ("fieldSelector=spec.color%3Dblue", ["b"]),
        ("fieldSelector=metadata.name!%3Da", ["b"]),
        ("fieldSelector=metadata.name%3Dnone", []),
    ):
        listed = await client.ok("GET", f"{WIDGETS}?{query}")
        assert [item["metadata"]["name"] for item in listed["items"]] == names, query
    code, answer = await client("GET", f"{WIDGETS}?fieldSelector=spec.size%3D1")
    assert (code, answer["message"]) == (400, "field label not supported: spec.size")


async def test_without_the_token_there_is_nothing_but_health(client: Any) -> None:
    code, answer = await client("GET", WIDGETS, Authorization="Bearer wrong")
    assert (code, answer["reason"]) == (401, "Unauthorized")
    for path in ("/healthz", "/livez", "/readyz"):
        assert await client("GET", path, Authorization="none") == (200, "ok")
    token = client.cluster.token
    assert (await client("GET", f"/token/{token}/api/v1/pods", Authorization="none"))[0] == 200
    assert (await client("GET", "/token/wrong/api/v1/pods"))[0] == 401


async def test_a_body_over_three_megabytes_is_refused(client: Any) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    code, answer = await client("POST", path, {"metadata": {"name": "a"}, "data": {"x": "y" * (3 << 20)}})
    assert (code, answer["reason"], answer["code"]) == (413, "RequestEntityTooLarge", 413)
    assert (await client("POST", path, {"metadata": {"name": "a"}, "data": {"x": "y" * (2 << 20)}}))[0] == 201


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/apis/apps/v1/things", None, 404),
        ("POST", f"{WIDGETS}/a", {}, 400),
        ("POST", f"{WIDGETS}/a/nothing", {}, 404),
        ("PUT", WIDGETS, {}, 405),
        ("POST", "/apis/example.com/v1/widgets", {}, 405),
        ("POST", WIDGETS, b"{", 400),
        ("POST", WIDGETS, [], 400),
        ("POST", "/api/v1/namespaces/default/configmaps", b'{"a":' * 300 + b"1" + b"}" * 300, 400),
        ("POST", WIDGETS, b'{"a":' * 5000 + b"1" + b"}" * 5000, 400),
        ("POST", WIDGETS, {"kind": "Other"}, 400),
        ("POST", WIDGETS, {"metadata": []}, 400),
        ("POST", f"{WIDGETS}?dryRun=Some", {}, 422),
        ("GET", f"{WIDGETS}?limit=x", None, 400),
    ],
)
async def test_a_request_that_makes_no_sense_gets_a_status(
    client: Any, method: str, path: str, body: Any, code: int
) -> None:
    found, answer = await client(method, path, body)
    assert (found, answer["kind"], answer["status"], answer["code"]) == (code, "Status", "Failure", code)


async def test_a_group_that_nobody_serves_has_no_page(client: Any) -> None:
    assert await client("GET", "/apis/none/v1/things") == (404, "404 page not found\n")


async def test_an_eviction_deletes_unless_a_budget_forbids(client: Any) -> None:
    pods = "/api/v1/namespaces/default/pods"
    for name in ("free", "kept"):
        pod = {
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await client.ok("POST", pods, pod)
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}}
    await client.ok("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "free"}}
    assert (await client("POST", f"{pods}/free/eviction", eviction))[0] == 201
    assert (await client("GET", f"{pods}/free"))[0] == 404
    code, answer = await client("POST", f"{pods}/kept/eviction", eviction)
    assert (code, answer["details"]["causes"][0]["reason"]) == (429, "DisruptionBudget")
