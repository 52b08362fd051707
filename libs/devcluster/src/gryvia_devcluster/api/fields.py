"""Decoding of built-in objects: unknown fields, wrong JSON types and nulls, by the field table in fields.json.

The real server decodes built-ins into Go structs; what a user sees of that is that an unknown field is dropped (or refused
under fieldValidation=Strict), a null is the same as nothing, and a string where a number belongs is a bad request. The
table is generated from the published API (generate_fields.py), so a field that exists is never refused by mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Json, ResourceType

_CHECKS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "s": (str, "string"),
    "t": (str, "time"),
    "m": (str, "time"),
    "y": (str, "[]byte"),
    "i": (int, "int64"),
    "b": (bool, "bool"),
    "n": ((int, float), "float64"),
    "q": ((str, int, float), "string"),
    "x": ((str, int), "string"),
}


@cache
def field_table() -> dict[str, Json]:
    """Type name to its fields (see generate_fields.py for the codes); read on first need."""
    table: dict[str, Json] = orjson.loads(files("gryvia_devcluster.api").joinpath("fields.json").read_bytes())
    return table


def type_name(rt: ResourceType) -> str:
    """The table's name for a served kind: core.v1.Pod, rbac.v1.Role."""
    return f"{rt.group.partition('.')[0] or 'core'}.{rt.version}.{rt.kind}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value is: `path` for a person; `go` as Go's decoder counts, the fields alone, `within` the innermost struct."""

    path: str
    go: str
    within: str

    def field(self, name: str, struct: str) -> _Place:
        return _Place(f"{self.path}.{name}" if self.path else name, f"{self.go}.{name}" if self.go else name, struct)

    def below(self, step: str) -> _Place:
        return _Place(self.path + step, self.go, self.within)


def decode(rt: ResourceType, obj: Json) -> list[str]:
    """Drops nulls and unknown fields in place; returns the dotted paths of the unknown ones. Raises ApiError BadRequest."""
    unknown: list[str] = []
    _struct(rt, obj, type_name(rt), _Place("", "", rt.kind), unknown)
    return unknown


def decode_metadata(rt: ResourceType, obj: Json) -> list[str]:
    """The same for the metadata of a custom object alone."""
    unknown: list[str] = []
    _value(rt, obj["metadata"], "meta.v1.ObjectMeta", _Place("metadata", "", rt.kind), unknown)
    return unknown


def _struct(rt: ResourceType, obj: Json, name: str, place: _Place, unknown: list[str]) -> None:
    fields = field_table()[name]["f"]
    if not fields:
        return
    struct = name.rpartition(".")[2]
    for field in list(obj):
        value, where = obj[field], place.field(field, struct)
        code = fields.get(field)
        if code is None:
            unknown.append(where.path)
            del obj[field]
        elif value is None:
            del obj[field]
        else:
            _value(rt, value, code, where, unknown)


def _value(rt: ResourceType, value: Any, code: str, place: _Place, unknown: list[str]) -> None:
    if code == "*":
        return
    head = code[0]
    if check := _CHECKS.get(code):
        expected, label = check
        if not isinstance(value, expected) or (isinstance(value, bool) and code != "b"):
            raise _mismatch(rt, value, place, label)
    elif head == "[":
        if not isinstance(value, list):
            raise _mismatch(rt, value, place, "[]" + _go_name(code[1:]))
        for index, item in enumerate(value):
            if item is None:
                raise _mismatch(rt, item, place, _go_name(code[1:]))
            _value(rt, item, code[1:], place.below(f"[{index}]"), unknown)
    elif head == "{":
        if not isinstance(value, dict):
            raise _mismatch(rt, value, place, "map[string]" + _go_name(code[1:]))
        for key in [key for key, item in value.items() if item is None]:
            value[key] = "" if code[1:] == "s" else value[key]
        for key, item in value.items():
            _value(rt, item, code[1:], place.below(f".{key}"), unknown)
    elif not isinstance(value, dict):
        raise _mismatch(rt, value, place, _go_name(code))
    else:
        _struct(rt, value, code, place, unknown)


def _go_name(code: str) -> str:
    if check := _CHECKS.get(code):
        return check[1]
    return ".".join(code.split(".")[-2:])


def _mismatch(rt: ResourceType, value: Any, place: _Place, expected: str) -> ApiError:
    names = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
    got = names.get(type(value), "null")
    return ApiError(
        "BadRequest",
        f'{rt.kind} in version "{rt.version}" cannot be handled as a {rt.kind}: json: cannot unmarshal {got} into Go '
        f"struct field {place.within}.{place.go} of type {expected}",
    )
