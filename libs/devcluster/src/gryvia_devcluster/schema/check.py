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
        else:
            _check(sub, place, "field", out)
    if schema.get("type") == "array" and schema.get("items") is None:
        out.append(causes.required(f"{path}.items", "must be specified"))
    if schema.get("items") is not None:
        _check(schema["items"], f"{path}.items", "item", out)
    _check_branches(schema, path, out)


def _check_forbidden(schema: Json, path: str, out: list[Cause]) -> None:
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        out.append(causes.forbidden(f"{path}.uniqueItems", text))
    if schema.get("$ref"):
        out.append(causes.forbidden(f"{path}.$ref", "$ref is not supported"))
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
    elif kind and kind not in TYPES:
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
        if schema.get("type"):
            text = "must be empty if x-kubernetes-int-or-string is true"
            out.append(causes.forbidden(f"{path}.type", text))
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
        out.append(
            causes.forbidden(f"{path}.x-kubernetes-list-map-keys", "must be empty if x-kubernetes-list-type is not map")
        )
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
    if not keys:
        text = "must not be empty if x-kubernetes-list-type is map"
        out.append(causes.required(f"{path}.x-kubernetes-list-map-keys", text))
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        out.append(causes.invalid(f"{path}.items.type", items.get("type", ""), text))
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        place = f"{path}.x-kubernetes-list-map-keys[{index}]"
        if key not in properties:
            out.append(causes.invalid(place, key, "must be the name of an object property"))
        elif properties[key].get("type") in ("array", "object"):
            out.append(
                causes.invalid(f"{path}.items.properties[{key}].type", properties[key]["type"], "must be a scalar type")
            )
        elif key not in (items.get("required") or ()) and properties[key].get("default") is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            out.append(causes.required(f"{path}.items.properties[{key}].default", text))


def _check_metadata(schema: Any, path: str, out: list[Cause]) -> None:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        kind = schema.get("type", "") if isinstance(schema, dict) else ""
        out.append(causes.invalid(f"{path}.type", kind, "must be object"))
        return
    names = set(schema.get("properties") or ())
    if not names <= {"name", "generateName"} or set(schema) - {"type", "properties", "description"}:
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        out.append(causes.forbidden(path, text))


def _check_branches(schema: Json, path: str, out: list[Cause]) -> None:
    spared = schema.get("x-kubernetes-int-or-string") and schema.get("anyOf") == _INT_OR_STRING
    for name in ("allOf", "anyOf", "oneOf"):
        for index, branch in enumerate(schema.get(name) or ()):
            place = f"{path}.{name}[{index}]"
            if name == "anyOf" and spared:
                continue
            if name == "allOf" and index == 0 and branch.get("anyOf") == _INT_OR_STRING:
                branch = {key: value for key, value in branch.items() if key != "anyOf"}
            _check_nested(branch, schema, place, path, out)
    if schema.get("not") is not None:
        _check_nested(schema["not"], schema, f"{path}.not", path, out)


def _check_nested(branch: Json, spine: Json | None, path: str, spine_path: str, out: list[Cause]) -> None:
    """A schema in a logical junctor: value validations only, on fields that the structural part declares too."""
    out.extend(causes.forbidden(f"{path}.{name}", text) for name, text in _NOT_NESTED.items() if branch.get(name))
    _check_forbidden(branch, path, out)
    for name, sub in (branch.get("properties") or {}).items():
        place = f"{path}.properties[{name}]"
        if name == "metadata":
            out.append(causes.forbidden(place, "must not be specified in a nested context"))
        below = ((spine or {}).get("properties") or {}).get(name)
        where = f"{spine_path}.properties[{name}]"
        if below is None:
            out.append(causes.required(where, f"because it is defined in {place}"))
        _check_nested(sub, below, place, where, out)
    if isinstance(branch.get("items"), dict):
        below = (spine or {}).get("items")
        if below is None:
            out.append(causes.required(f"{spine_path}.items", f"because it is defined in {path}.items"))
        _check_nested(branch["items"], below, f"{path}.items", f"{spine_path}.items", out)
    for name in ("allOf", "anyOf", "oneOf"):
        for index, each in enumerate(branch.get(name) or ()):
            _check_nested(each, spine, f"{path}.{name}[{index}]", spine_path, out)
    if isinstance(branch.get("not"), dict):
        _check_nested(branch["not"], spine, f"{path}.not", spine_path, out)
