"""An applied configuration is read by its types before anything else: a text where a number belongs can be owned by nobody.

The words are those of the typed parser of the real server, which prints some values in Go's own notation.
"""

from __future__ import annotations

import json
from typing import Any

from gryvia_devcluster.api.fields import field_table, type_name
from gryvia_devcluster.gotext import go_syntax, go_text, go_type
from gryvia_devcluster.patch.claims import MalformedClaim, refused
from gryvia_devcluster.types import Json, ResourceType

_SCALARS = {"string": "s", "integer": "n", "number": "n", "boolean": "b"}
_CODES = {"s": "s", "t": "s", "m": "s", "y": "s", "i": "n", "n": "n", "b": "b"}


def check_types(rt: ResourceType, applied: Json) -> None:
    """Raises ApiError with every value of a wrong type."""
    found: list[str] = []
    if rt.schema is None:
        _by_code(applied, type_name(rt), "", found)
    else:
        _by_schema(applied, {**rt.schema, "type": "object"}, "", found, top=True)
        _by_code(applied.get("metadata"), "meta.v1.ObjectMeta", ".metadata", found)
    if found:
        told = found[0] if len(found) == 1 else "errors:\n" + "\n".join(f"  {text}" for text in found)
        raise refused(MalformedClaim(told), applied)


def _by_schema(value: Any, schema: Json, path: str, found: list[str], *, top: bool = False) -> None:
    kind = schema.get("type")
    if value is None or kind is None:
        return
    if kind == "object":
        if not isinstance(value, dict):
            found.append(f"{path}: expected map, got &{{{go_text(value)}}}")
            return
        properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, each in value.items():
            below = properties.get(key, extra if isinstance(extra, dict) else {})
            if not (top and key == "metadata"):
                _by_schema(each, below, f"{path}.{key}", found)
    elif kind == "array":
        if not isinstance(value, list):
            found.append(f"{path}: expected list, got &{{{go_text(value)}}}")
            return
        for index, each in enumerate(value):
            _by_schema(each, schema.get("items") or {}, path + _item(schema, each, index), found)
    else:
        _scalar(value, _SCALARS.get(kind, ""), path, found)


def _item(schema: Json, item: Any, index: int) -> str:
    """How an item is told from the others."""
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    if kind == "map" and isinstance(item, dict) and (named := [key for key in sorted(keys) if key in item]):
        return "[" + ",".join(f"{key}={json.dumps(item[key])}" for key in named) + "]"
    return f"[={json.dumps(item)}]" if kind == "set" and not isinstance(item, dict | list) else f"[{index}]"


def _by_code(value: Any, code: str, path: str, found: list[str]) -> None:
    if value is None or code == "*":
        return
    if code in _CODES:
        _scalar(value, _CODES[code], path, found)
    elif code[0] == "[":
        if not isinstance(value, list):
            found.append(f"{path}: expected list, got &{{{go_text(value)}}}")
            return
        for index, each in enumerate(value):
            _by_code(each, code[1:], f"{path}[{index}]", found)
    elif code[0] == "{" or "." in code:
        if not isinstance(value, dict):
            found.append(f"{path}: expected map, got &{{{go_text(value)}}}")
            return
        fields = field_table()[code]["f"] if code[0] != "{" else {}
        for key, each in value.items():
            _by_code(each, code[1:] if code[0] == "{" else fields.get(key, "*"), f"{path}.{key}", found)


def _scalar(value: Any, wanted: str, path: str, found: list[str]) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted == "s" and not isinstance(value, str):
        found.append(f"{path}: expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}")
    elif wanted == "n" and not number:
        found.append(f"{path}: expected numeric (int or float), got {go_type(value)}")
    elif wanted == "b" and not isinstance(value, bool):
        found.append(f"{path}: expected boolean, got &{{{go_text(value)}}}")
