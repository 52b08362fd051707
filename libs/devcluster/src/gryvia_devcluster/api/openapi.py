"""/openapi/v3: what kubectl needs for `explain`, for validation in `apply` and `create`, and for completion.

One document per group version, made when asked for and kept while the catalog stays as it is. Custom types show their CRD
schema; built-ins are made from the field table, without descriptions. PATCH does not announce strategic merge, so kubectl
merges built-ins with its own compiled-in rules. /openapi/v2 has no types: kubectl asks it, in protobuf, about kinds that v3 does not
know, and lets them through.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from gryvia_devcluster.api.catalog import Catalog, Served
from gryvia_devcluster.api.fields import field_table, type_name
from gryvia_devcluster.api.request import Reply, json_reply
from gryvia_devcluster.types import Json, ResourceType

_PLAIN: dict[str, Json] = {
    "s": {"type": "string"},
    "t": {"type": "string", "format": "date-time"},
    "m": {"type": "string", "format": "date-time"},
    "y": {"type": "string", "format": "byte"},
    "i": {"type": "integer", "format": "int64"},
    "b": {"type": "boolean"},
    "n": {"type": "number", "format": "double"},
    "q": {"type": "string", "x-kubernetes-int-or-string": True},
    "x": {"type": "string", "x-kubernetes-int-or-string": True},
    "*": {"type": "object"},
}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
# A Document of swagger "2.0" with info (title, version) and paths, all short texts of protobuf fields 1, 2 and 8.
_EMPTY_V2 = b"\n\x032.0\x12\x0f\n\nKubernetes\x12\x011B\x00"
_REF = "#/components/schemas/"


class OpenApi:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._generation = -1
        self._documents: dict[str, Reply] = {}

    def answer(self, path: str) -> Reply | None:
        if path == "/openapi/v2":
            return Reply(_EMPTY_V2, content_type="application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
        if not path.startswith("/openapi/v3"):
            return None
        if self._generation != self._catalog.generation:
            self._documents.clear()
            self._generation = self._catalog.generation
        name = path.removeprefix("/openapi/v3").strip("/")
        if name not in self._documents:
            reply = self._document(name) if name else self._index()
            if reply is None:
                return None
            self._documents[name] = reply
        return self._documents[name]

    def _types(self) -> dict[str, list[Served]]:
        found: dict[str, list[Served]] = {}
        for served in self._catalog.all():
            rt = served.rt
            found.setdefault(f"apis/{rt.api_version}" if rt.group else "api/v1", []).append(served)
        return found

    def _index(self) -> Reply:
        paths = {}
        for name, types in self._types().items():
            shape = orjson.dumps([(served.rt.plural, served.rt.schema) for served in types])
            digest = hashlib.sha256(shape).hexdigest()[:32].upper()
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
        return json_reply({"paths": paths})

    def _document(self, name: str) -> Reply | None:
        types = self._types().get(name)
        if types is None:
            return None
        schemas: dict[str, Json] = {}
        paths: dict[str, Json] = {}
        for served in types:
            _add_paths(paths, served.rt, f"/{name}")
            _add_schema(schemas, served)
        return json_reply(
            {
                "openapi": "3.0.0",
                "info": {"title": "Kubernetes", "version": "devcluster"},
                "paths": paths,
                "components": {"schemas": schemas},
            }
        )


def _gvk(rt: ResourceType) -> Json:
    return {"group": rt.group, "version": rt.version, "kind": rt.kind}


def _add_paths(paths: dict[str, Json], rt: ResourceType, prefix: str) -> None:
    base = f"{prefix}/namespaces/{{namespace}}/{rt.plural}" if rt.namespaced else f"{prefix}/{rt.plural}"
    reference = {"$ref": _REF + schema_name(rt)}
    read, write = _operation(rt, reference, ()), _operation(rt, reference, _WRITE_PARAMETERS)
    content = {"content": {"application/json": {"schema": reference}}}
    patch_content = {"content": {kind: {"schema": {"type": "object"}} for kind in _patch_types()}}
    paths[base] = {
        "get": {**read, "x-kubernetes-action": "list"},
        "post": {**write, "requestBody": content, "x-kubernetes-action": "post"},
    }
    paths[f"{base}/{{name}}"] = {
        "get": {**read, "x-kubernetes-action": "get"},
        "put": {**write, "requestBody": content, "x-kubernetes-action": "put"},
        "patch": {
            **_operation(rt, reference, (*_WRITE_PARAMETERS, "force")),
            "requestBody": patch_content,
            "x-kubernetes-action": "patch",
        },
        "delete": {**read, "x-kubernetes-action": "delete"},
    }


def _patch_types() -> tuple[str, ...]:
    return ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")


def _operation(rt: ResourceType, reference: Json, parameters: tuple[str, ...]) -> Json:
    return {
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        "x-kubernetes-group-version-kind": _gvk(rt),
    }


def schema_name(rt: ResourceType) -> str:
    if rt.schema is not None:
        return ".".join([*reversed(rt.group.split(".")), rt.version, rt.kind])
    return f"io.k8s.api.{type_name(rt)}"


def _add_schema(schemas: dict[str, Json], served: Served) -> None:
    rt = served.rt
    if rt.schema is None:
        _builtin_reference(schemas, type_name(rt))
        schemas[schema_name(rt)]["x-kubernetes-group-version-kind"] = [_gvk(rt)]
        return
    metadata = _builtin_reference(schemas, "meta.v1.ObjectMeta")
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        **(rt.schema.get("properties") or {}),
        "metadata": {"allOf": [metadata]},
    }
    schemas[schema_name(rt)] = {
        **rt.schema,
        "properties": properties,
        "x-kubernetes-group-version-kind": [_gvk(rt)],
    }


def _builtin_reference(schemas: dict[str, Json], name: str) -> Json:
    """A reference to a type of the field table, which is added with all that it refers to."""
    full = f"io.k8s.api.{name}"
    if full not in schemas:
        schemas[full] = {}
        schemas[full] = _builtin(schemas, name)
    return {"$ref": _REF + full}


def _builtin(schemas: dict[str, Json], name: str) -> Json:
    described = field_table()[name]
    schema: Json = {
        "type": "object",
        "properties": {field: _field(schemas, code) for field, code in described["f"].items()},
    }
    if described["r"]:
        schema["required"] = described["r"]
    return schema


def _field(schemas: dict[str, Json], code: str) -> Json:
    if code in _PLAIN:
        return dict(_PLAIN[code])
    inner: Any = _field(schemas, code[1:]) if code[0] in "[{" else None
    if code[0] == "[":
        return {"type": "array", "items": inner}
    if code[0] == "{":
        return {"type": "object", "additionalProperties": inner}
    return {"allOf": [_builtin_reference(schemas, code)]}
