"""From a pydantic model to a structural schema, the subset of OpenAPI 3.0 that a CustomResourceDefinition may hold.

By hand on purpose: no library writes structural schemas with CEL rules and list types from pydantic; the known ones
keep `$ref`, `title`, `anyOf` with null or `additionalProperties` beside `properties`, each of which the API server refuses.
Pydantic's own JSON schema is the source (its semantics stay in one place), the rules here are what Kubernetes adds:
references are inlined, an optional field is one that may be left out (null is never stored), numbers have OpenAPI's
exclusive bounds, free-form objects keep unknown fields, and a default is stored only where the contract says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gryvia_common.kinds.model import Model
from gryvia_common.kube.objects import Json

OWN = "x-gryvia-"
DEFAULT = f"{OWN}default"
REQUIRED = f"{OWN}required"
SEE = f"{OWN}see"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
KEPT = (
    "type",
    "format",
    "description",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
)


def structural(model: type[Model]) -> Json:
    """The structural schema of the model, as it stands in a CRD."""
    schema = annotated(model)
    _strip(schema)
    return schema


def annotated(model: type[Model]) -> Json:
    """The same with our own annotations (every default, where a shared part is documented), for the reference pages."""
    source = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(source, source.get("$defs", {}))


def _convert(node: Mapping[str, Any], definitions: Mapping[str, Json]) -> Json:
    """One node of pydantic's JSON schema as a structural one. What stands beside a reference wins over what it refers to."""
    node = _resolve(node, definitions)
    if node.get(INT_OR_STRING):
        return _int_or_string(node)
    result: Json = {key: node[key] for key in KEPT if key in node}
    result.update({key: value for key, value in node.items() if key.startswith(OWN)})
    if node.get("default") is not None:
        result["default"] = node["default"]
    if "const" in node:
        result["enum"] = [node["const"]]
    for bound in ("Minimum", "Maximum"):
        if f"exclusive{bound}" in node:
            result[bound.lower()] = node[f"exclusive{bound}"]
            result[f"exclusive{bound}"] = True
    if node.get("type") == "object":
        _convert_object(node, result, definitions)
    elif node.get("type") == "array":
        result["items"] = _convert(node["items"], definitions)
    elif node.get(PRESERVE):
        result[PRESERVE] = True
    elif "type" not in node:
        raise TypeError(f"no structural schema for {dict(node)}: a field needs one type (or int-or-string)")
    return result


def _convert_object(node: Mapping[str, Any], result: Json, definitions: Mapping[str, Json]) -> None:
    if properties := node.get("properties"):
        result["properties"] = {name: _convert(part, definitions) for name, part in properties.items()}
        required = {name for name, part in result["properties"].items() if part.pop(REQUIRED, False)}
        if required := required | set(node.get("required", ())):
            result["required"] = sorted(required)
    elif isinstance(values := node.get("additionalProperties"), Mapping) and values:
        result["additionalProperties"] = _convert(values, definitions)
    else:
        result[PRESERVE] = True


def _int_or_string(node: Mapping[str, Any]) -> Json:
    """The one form of anyOf that gives types and that a structural schema allows."""
    result: Json = {
        key: node[key] for key in ("description", "pattern", "default", DEFAULT) if node.get(key) is not None
    }
    return {"anyOf": [{"type": "integer"}, {"type": "string"}], INT_OR_STRING: True, **result}


def _resolve(node: Mapping[str, Any], definitions: Mapping[str, Json]) -> Mapping[str, Any]:
    """Follows references and takes null out of a union, until the node says its own type."""
    while True:
        outer = {key: value for key, value in node.items() if key not in ("$ref", "$defs", "title")}
        if "$ref" in node:
            node = _merge(definitions[node["$ref"].rpartition("/")[2]], outer)
        elif "anyOf" in node and not node.get(INT_OR_STRING):
            options = [option for option in node["anyOf"] if option.get("type") != "null"]
            if len(options) != 1:
                raise TypeError(f"a union has no structural schema: {dict(node)}")
            del outer["anyOf"]
            node = _merge(options[0], outer)
        else:
            return outer


def _merge(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> Json:
    """`outer` over `inner`; rules of both hold."""
    rules = [*inner.get("x-kubernetes-validations", ()), *outer.get("x-kubernetes-validations", ())]
    return {**inner, **outer, **({"x-kubernetes-validations": rules} if rules else {})}


def _strip(node: Json) -> None:
    """Removes our annotations; a default goes too unless it is marked as the API server's."""
    if not node.pop(DEFAULT, False):
        node.pop("default", None)
    node.pop(SEE, None)
    for part in (node.get("properties") or {}).values():
        _strip(part)
    for key in ("items", "additionalProperties"):
        if key in node:
            _strip(node[key])
