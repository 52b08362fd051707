"""Discovery: which groups, versions and resources there are, in the aggregated form and in the older one.

Documents are made once per state of the catalog. The aggregated answer must repeat g, v and as in its content type, or
kubectl takes it for the older form.
"""

from __future__ import annotations

import orjson

from gryvia_devcluster.api.catalog import Catalog
from gryvia_devcluster.api.request import Reply, json_reply
from gryvia_devcluster.api.reviews import REVIEWS
from gryvia_devcluster.types import Json, ResourceType

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUBRESOURCES: dict[str, tuple[tuple[str, Json, list[str]], ...]] = {
    "pods": (
        ("log", {"group": "", "version": "v1", "kind": "Pod"}, ["get"]),
        ("eviction", {"group": "policy", "version": "v1", "kind": "Eviction"}, ["create"]),
        ("binding", {"group": "", "version": "v1", "kind": "Binding"}, ["create"]),
    ),
    "namespaces": (("finalize", {"group": "", "version": "v1", "kind": "Namespace"}, ["update"]),),
}


class Discovery:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._made: tuple[int, dict[str, Reply]] = (-1, {})

    def answer(self, path: str, accept: str) -> Reply | None:
        generation, documents = self._made
        if generation != self._catalog.generation:
            documents = self._make()
            self._made = (self._catalog.generation, documents)
        path = path.rstrip("/")
        if path in ("/api", "/apis") and _wants_aggregated(accept):
            return documents[f"{path}?aggregated"]
        return documents.get(path)

    def _groups(self) -> dict[str, dict[str, list[ResourceType]]]:
        groups: dict[str, dict[str, list[ResourceType]]] = {}
        for rt in [*(served.rt for served in self._catalog.all()), *REVIEWS]:
            groups.setdefault(rt.group, {}).setdefault(rt.version, []).append(rt)
        return groups

    def _make(self) -> dict[str, Reply]:
        groups = self._groups()
        core = groups.pop("")
        documents = {
            "": json_reply(
                {"paths": ["/api", "/api/v1", "/apis", *(f"/apis/{name}" for name in groups), "/openapi/v3"]}
            ),
            "/api": json_reply({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
            "/api?aggregated": _aggregated({"": core}),
            "/apis?aggregated": _aggregated(groups),
            "/api/v1": json_reply(_resource_list("v1", core["v1"])),
        }
        listed = []
        for group, versions in groups.items():
            entry = _group(group, sorted(versions, key=_priority))
            listed.append(entry)
            documents[f"/apis/{group}"] = json_reply({"kind": "APIGroup", "apiVersion": "v1", **entry})
            for version, types in versions.items():
                documents[f"/apis/{group}/{version}"] = json_reply(_resource_list(f"{group}/{version}", types))
        documents["/apis"] = json_reply({"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})
        return documents


def _wants_aggregated(accept: str) -> bool:
    return any(
        "as=APIGroupDiscoveryList" in part and "v=v2" in f"{part};".split("v2beta1")[0] for part in accept.split(",")
    )


def _priority(version: str) -> tuple[int, str]:
    """GA before beta before alpha, newer first among equals (by name)."""
    stage = 2 if "alpha" in version else 1 if "beta" in version else 0
    return stage, "".join(chr(0x10FFFF - ord(letter)) for letter in version)


def _group(group: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _kind(rt: ResourceType) -> Json:
    return {"group": rt.group, "version": rt.version, "kind": rt.kind}


def _subresources(rt: ResourceType) -> list[tuple[str, Json, list[str]]]:
    found: list[tuple[str, Json, list[str]]] = []
    if "status" in rt.subresources:
        found.append(("status", _kind(rt), ["get", "patch", "update"]))
    if "scale" in rt.subresources:
        found.append(("scale", {"group": "autoscaling", "version": "v1", "kind": "Scale"}, ["get", "patch", "update"]))
    return [*found, *_SUBRESOURCES.get(rt.group_resource, ())]


def _verbs(rt: ResourceType) -> list[str]:
    return ["create"] if rt in REVIEWS else _VERBS


def _aggregated(groups: dict[str, dict[str, list[ResourceType]]]) -> Reply:
    items = []
    for group, versions in groups.items():
        listed = []
        for version in sorted(versions, key=_priority):
            resources = [_discovered(rt) for rt in versions[version]]
            listed.append({"version": version, "resources": resources, "freshness": "Current"})
        items.append({"metadata": {"name": group, "creationTimestamp": None}, "versions": listed})
    body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    return Reply(orjson.dumps(body), content_type=_AGGREGATED)


def _discovered(rt: ResourceType) -> Json:
    found: Json = {
        "resource": rt.plural,
        "responseKind": _kind(rt),
        "scope": "Namespaced" if rt.namespaced else "Cluster",
        "singularResource": rt.singular,
        "verbs": _verbs(rt),
    }
    if rt.short_names:
        found["shortNames"] = list(rt.short_names)
    if rt.categories:
        found["categories"] = list(rt.categories)
    subresources = [
        {"subresource": name, "responseKind": kind, "verbs": verbs} for name, kind, verbs in _subresources(rt)
    ]
    if subresources:
        found["subresources"] = subresources
    return found


def _resource_list(group_version: str, types: list[ResourceType]) -> Json:
    resources = []
    for rt in types:
        resource: Json = {
            "name": rt.plural,
            "singularName": rt.singular,
            "namespaced": rt.namespaced,
            "kind": rt.kind,
            "verbs": _verbs(rt),
        }
        if rt.short_names:
            resource["shortNames"] = list(rt.short_names)
        if rt.categories:
            resource["categories"] = list(rt.categories)
        resources.append(resource)
        for name, kind, verbs in _subresources(rt):
            resources.append(
                {"name": f"{rt.plural}/{name}", "singularName": "", "namespaced": rt.namespaced, **kind, "verbs": verbs}
            )
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
