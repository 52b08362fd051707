"""Discovery, OpenAPI and the answers that are not about objects."""

from __future__ import annotations

from typing import Any

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


async def test_aggregated_discovery_repeats_its_type_and_lists_custom_types(client: Any) -> None:
    url = client.cluster.url + "/apis"
    async with client.session.get(url, headers={"Accept": AGGREGATED}) as response:
        assert (
            response.headers["Content-Type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        )
        body = await response.json()
    group = next(item for item in body["items"] if item["metadata"]["name"] == "example.com")
    resource = group["versions"][0]["resources"][0]
    assert (resource["resource"], resource["scope"], resource["shortNames"]) == ("widgets", "Namespaced", ["wi"])
    assert [sub["subresource"] for sub in resource["subresources"]] == ["status", "scale"]


async def test_legacy_discovery_says_the_same(client: Any) -> None:
    assert (await client.ok("GET", "/api"))["versions"] == ["v1"]
    groups = await client.ok("GET", "/apis")
    assert {"apps", "batch", "example.com"} <= {group["name"] for group in groups["groups"]}
    resources = await client.ok("GET", "/apis/example.com/v1")
    assert [resource["name"] for resource in resources["resources"]] == ["widgets", "widgets/status", "widgets/scale"]
    await client.ok("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
    assert (await client("GET", "/apis/example.com/v1"))[0] == 404


async def test_openapi_describes_custom_and_built_in_types(client: Any) -> None:
    index = await client.ok("GET", "/openapi/v3")
    path = index["paths"]["apis/example.com/v1"]["serverRelativeURL"]
    document = await client.ok("GET", path)
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["properties"]["spec"]["properties"]["size"]["type"] == "integer"
    operation = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert operation["x-kubernetes-group-version-kind"]["kind"] == "Widget"
    assert "fieldValidation" in [parameter["name"] for parameter in operation["parameters"]]
    core = await client.ok("GET", index["paths"]["api/v1"]["serverRelativeURL"])
    assert "containers" in core["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert (await client("GET", "/openapi/v2"))[0] == 200


async def test_every_reference_in_an_openapi_document_leads_somewhere(client: Any) -> None:
    index = await client.ok("GET", "/openapi/v3")
    for entry in index["paths"].values():
        document = await client.ok("GET", entry["serverRelativeURL"])
        schemas = document["components"]["schemas"]
        waiting: list[Any] = [document]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                if isinstance(reference := value.get("$ref"), str):
                    assert reference.removeprefix("#/components/schemas/") in schemas
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value


async def test_a_changed_schema_changes_the_hash(client: Any) -> None:
    before = (await client.ok("GET", "/openapi/v3"))["paths"]["apis/example.com/v1"]["serverRelativeURL"]
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    definition = await client.ok("GET", crd)
    properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"]["properties"]["extra"] = {"type": "string"}
    await client.ok("PUT", crd, definition)
    assert (await client.ok("GET", "/openapi/v3"))["paths"]["apis/example.com/v1"]["serverRelativeURL"] != before


async def test_version_and_access_review(client: Any) -> None:
    assert (await client.ok("GET", "/version"))["major"] == "1"
    review = {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}}
    code, answer = await client("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert (code, answer["status"]["allowed"]) == (201, True)
