"""What the real API server refuses in a CRD's schema: what is not structural, what it forbids, defaults and rules that
do not fit.

The messages are field errors as the server prints them, `path: body`, under `spec.validation.openAPIV3Schema`, which
callers that know the version replace.
"""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.schema import causes
from gryvia_devcluster.schema.causes import Cause
from gryvia_devcluster.schema.cel.engine import pattern_error
from gryvia_devcluster.schema.contents import check_contents
from gryvia_devcluster.schema.node import META_FIELDS
from gryvia_devcluster.types import Json

ROOT = "spec.validation.openAPIV3Schema"
TYPES = ("array", "boolean", "integer", "number", "object", "string")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_FORBIDDEN = (
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "patternProperties",
    "readOnly",
    "writeOnly",
    "xml",
)
_NOT_NESTED = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def check_structural(schema: Json) -> list[str]:
    """The refusals, sorted, as `field: message`; [] where the real server would accept the schema."""
    found: list[Cause] = []
    _check(schema, ROOT, "root", found)
    if not found:
        check_contents(schema, ROOT, found)
    return sorted({f"{each['field']}: {each['message']}" for each in found})


def _check(schema: Any, path: str, level: str, out: list[Cause]) -> None:
    if not isinstance(schema, dict):
        out.append(causes.invalid(path, str(type(schema).__name__), "must be a schema object"))
        return
    _check_forbidden(schema, path, out)
    _check_type(schema, path, level, out)
    _check_extensions(schema, path, out)
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict) or additional is False:
        if properties:
            out.append(
                causes.forbidden(
                    f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
                )
            )
        if level == "root":
            out.append(causes.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if schema.get("x-kubernetes-embedded-resource"):
            text = "must not be used if x-kubernetes-embedded-resource is set"
            out.append(causes.forbidden(f"{path}.additionalProperties", text))
    if isinstance(additional, dict):
        _check(additional, f"{path}.additionalProperties", "field", out)
    for name, sub in properties.items():
        place = f"{path}.properties[{name}]"
        if level == "root" and name == "metadata":
            _check_metadata(sub, place, out)
            continue
        _check(sub, place, "field", out)
        wanted = "object" if name == "metadata" else "string"
        is_resource = level == "root" or bool(schema.get("x-kubernetes-embedded-resource"))
        if is_resource and name in META_FIELDS and isinstance(sub, dict) and sub.get("type") != wanted:
            out.append(causes.invalid(f"{place}.type", sub.get("type", ""), f"must be {wanted}"))
    if schema.get("type") == "array" and schema.get("items") is None:
        out.append(causes.required(f"{path}.items", "must be specified"))
    if isinstance(schema.get("items"), list):
        out.append(causes.forbidden(f"{path}.items", "items must be a schema object and not an array"))
    elif schema.get("items") is not None:
        _check(schema["items"], f"{path}.items", "item", out)
    _check_branches(schema, path, out)
    if level == "root":
        # the real server asks for completeness of the root's own junctors only
        _check_complete(schema, schema, path, path, out)


def _check_forbidden(schema: Json, path: str, out: list[Cause]) -> None:
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        out.append(causes.forbidden(f"{path}.uniqueItems", text))
    if schema.get("$ref"):
        out.append(causes.forbidden(f"{path}.$ref", "$ref is not supported"))
    if schema.get("additionalItems") is not None:
        out.append(causes.forbidden(f"{path}.additionalItems", "additionalItems is not supported"))
    out.extend(
        causes.forbidden(f"{path}.{name}", f"{name} is not supported") for name in _FORBIDDEN if schema.get(name)
    )
    if schema.get("pattern"):
        why = pattern_error(schema["pattern"])
        if why is not None:
            text = f"must be a valid regular expression, but isn't: error parsing regexp: {why}"
            out.append(causes.invalid(f"{path}.pattern", schema["pattern"], text))


def _check_type(schema: Json, path: str, level: str, out: list[Cause]) -> None:
    kind = schema.get("type")
    embedded = schema.get("x-kubernetes-embedded-resource")
    if kind is not None and not isinstance(kind, str):
        out.append(causes.invalid(f"{path}.type", kind, "must be one type"))
        return
    if kind == "null":
        out.append(causes.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    if kind and kind not in TYPES:
        out.append(causes.not_supported(f"{path}.type", kind, list(TYPES)))
    if embedded and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        place = f"{path}.type"
        out.append(causes.invalid(place, kind, text) if kind else causes.required(place, text))
    elif (
        not kind
        and not schema.get("x-kubernetes-int-or-string")
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        where = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}[
            level
        ]
        out.append(causes.required(f"{path}.type", f"must not be empty {where}"))
    if level == "root" and kind and kind != "object":
        out.append(causes.invalid(f"{path}.type", kind, "must be object at the root"))
    if level == "root" and schema.get("nullable"):
        out.append(causes.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))


def _check_extensions(schema: Json, path: str, out: list[Cause]) -> None:
    preserve = schema.get("x-kubernetes-preserve-unknown-fields")
    if preserve is False:
        out.append(causes.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("preserve-unknown-fields", "embedded-resource"):
            if schema.get(f"x-kubernetes-{name}"):
                text = "must be false if x-kubernetes-int-or-string is true"
                out.append(causes.invalid(f"{path}.x-kubernetes-{name}", True, text))
    if schema.get("x-kubernetes-embedded-resource") and not preserve and not schema.get("properties"):
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        out.append(causes.required(f"{path}.properties", text))
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None:
        if schema.get("type") != "object":
            text = "must be object if x-kubernetes-map-type is specified"
            out.append(causes.invalid(f"{path}.type", schema.get("type", ""), text))
        if map_type not in ("atomic", "granular"):
            out.append(causes.not_supported(f"{path}.x-kubernetes-map-type", map_type, ["atomic", "granular"]))
    _check_list_type(schema, path, out)


def _check_list_type(schema: Json, path: str, out: list[Cause]) -> None:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    place = f"{path}.x-kubernetes-list-type"
    if list_type is None:
        if keys:
            text = "must be map if x-kubernetes-list-map-keys is non-empty"
            out.append(causes.required(place, text))
        return
    items: Json = schema["items"] if isinstance(schema.get("items"), dict) else {}
    if schema.get("type") != "array":
        out.append(
            causes.invalid(
                f"{path}.type", schema.get("type", ""), "must be array if x-kubernetes-list-type is specified"
            )
        )
    if list_type not in ("atomic", "set", "map"):
        out.append(causes.not_supported(place, list_type, ["atomic", "set", "map"]))
    elif list_type != "map" and keys:
        out.append(causes.invalid(place, list_type, "must be map if x-kubernetes-list-map-keys is non-empty"))
    elif list_type == "set":
        atomic = items.get("x-kubernetes-map-type") == "atomic" or items.get("x-kubernetes-list-type") == "atomic"
        if items.get("nullable"):
            out.append(
                causes.forbidden(f"{path}.items.nullable", "cannot be nullable when x-kubernetes-list-type is set")
            )
        if items.get("type") == "object" and not atomic:
            text = "must be atomic as item of a list with x-kubernetes-list-type=set"
            out.append(causes.invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), text))
    elif list_type == "map":
        _check_map_keys(items, keys, path, out)


def _check_map_keys(items: Json, keys: list[str], path: str, out: list[Cause]) -> None:
    place = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        out.append(causes.required(place, "must not be empty if x-kubernetes-list-type is map"))
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        out.append(causes.invalid(f"{path}.items.type", items.get("type", ""), text))
    if items.get("nullable"):
        out.append(causes.forbidden(f"{path}.items.nullable", "cannot be nullable when x-kubernetes-list-type is map"))
    properties = items.get("properties") or {}
    if not set(keys) <= set(properties):
        out.append(causes.invalid(place, keys, "entries must all be names of item properties"))
    if len(set(keys)) < len(keys):
        out.append(causes.invalid(place, keys, "must not contain duplicate entries"))
    for key in dict.fromkeys(keys):
        sub, where = properties.get(key, {}), f"{path}.items.properties[{key}]"
        if sub.get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            out.append(causes.invalid(f"{where}.type", sub["type"], text))
        if sub.get("nullable"):
            text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            out.append(causes.forbidden(f"{where}.nullable", text))
        if sub and key not in (items.get("required") or ()) and sub.get("default") is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            out.append(causes.required(f"{where}.default", text))


def _check_metadata(schema: Any, path: str, out: list[Cause]) -> None:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        kind = schema.get("type", "") if isinstance(schema, dict) else ""
        out.append(causes.invalid(f"{path}.type", kind, "must be object"))
        return
    names = set(schema.get("properties") or ())
    if not names <= {"name", "generateName"} or set(schema) - {"type", "properties", "default"}:
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        out.append(causes.forbidden(path, text))


def _junctors(schema: Json) -> list[tuple[str, Json]]:
    """The schemas below allOf, anyOf, oneOf and not, with their places."""
    out = [
        (f".{name}[{index}]", each)
        for name in ("allOf", "anyOf", "oneOf")
        for index, each in enumerate(schema.get(name) or ())
    ]
    return [*out, (".not", schema["not"])] if isinstance(schema.get("not"), dict) else out


def _check_branches(schema: Json, path: str, out: list[Cause]) -> None:
    for place, branch in _junctors(schema):
        if place.startswith(".anyOf") and schema["anyOf"] == _INT_OR_STRING:
            continue
        if place == ".allOf[0]" and branch.get("anyOf") == _INT_OR_STRING:
            branch = {key: value for key, value in branch.items() if key != "anyOf"}
        _check_nested(branch, path + place, out)


def _check_nested(branch: Json, path: str, out: list[Cause]) -> None:
    """A schema in a logical junctor: value validations only."""
    out.extend(causes.forbidden(f"{path}.{name}", text) for name, text in _NOT_NESTED.items() if branch.get(name))
    _check_forbidden(branch, path, out)
    for name, sub in (branch.get("properties") or {}).items():
        if name == "metadata":
            text = "must not be specified in a nested context"
            out.append(causes.forbidden(f"{path}.properties[{name}]", text))
        _check_nested(sub, f"{path}.properties[{name}]", out)
    if isinstance(branch.get("items"), dict):
        _check_nested(branch["items"], f"{path}.items", out)
    for place, each in _junctors(branch):
        _check_nested(each, path + place, out)


def _check_complete(branch: Json, spine: Json | None, path: str, spine_path: str, out: list[Cause]) -> None:
    """What a junctor restricts has to be declared by the structural part too."""
    if spine is None:
        out.append(causes.required(spine_path, f"because it is defined in {path}"))
        return
    if branch is not spine:
        for name, sub in (branch.get("properties") or {}).items():
            below = (spine.get("properties") or {}).get(name)
            _check_complete(sub, below, f"{path}.properties[{name}]", f"{spine_path}.properties[{name}]", out)
        if isinstance(branch.get("items"), dict):
            _check_complete(branch["items"], spine.get("items"), f"{path}.items", f"{spine_path}.items", out)
    for place, each in _junctors(branch):
        _check_complete(each, spine, path + place, spine_path, out)
