"""A structural schema compiled once: one Node a schema position, with everything the passes ask for already looked up.

Dict lookups on the raw schema would be asked for again on every object; attributes of slotted nodes are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gryvia_devcluster.schema.formats import string_format
from gryvia_devcluster.types import Json

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
OBJECT_META_FIELDS = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


class Missing:
    """No default at all, as opposed to a default of null."""


MISSING = Missing()


@dataclass(slots=True, eq=False)
class Node:
    """`types` is empty where any type will do. `bounds` are (limit, exclusive); `branches` maps allOf, anyOf and
    oneOf."""

    raw: Json
    types: tuple[str, ...] = ()
    nullable: bool = False
    properties: dict[str, Node] = field(default_factory=dict)
    additional: Node | bool | None = None
    items: Node | None = None
    required: tuple[str, ...] = ()
    enum: list[Any] | None = None
    default: Any = MISSING
    preserve: bool = False
    embedded: bool = False
    list_type: str = "atomic"
    list_map_keys: tuple[str, ...] = ()
    minimum: tuple[float, bool] | None = None
    maximum: tuple[float, bool] | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: tuple[str, re.Pattern[str]] | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    format: str = ""
    format_check: Callable[[str], bool] | None = None
    branches: dict[str, list[Node]] = field(default_factory=dict)
    negation: Node | None = None
    rules: list[Json] = field(default_factory=list)
    has_rules: bool = False
    has_list_types: bool = False

    def field(self, key: str) -> Node | None:
        """The node of a key: a property's, or that of additionalProperties."""
        found = self.properties.get(key)
        if found is None and isinstance(self.additional, Node):
            return self.additional
        return found

    def children(self) -> list[Node]:
        out = [*self.properties.values()]
        out += [node for node in (self.items, self.additional) if isinstance(node, Node)]
        return out


def compile_schema(schema: Json) -> Node:
    """The tree of a schema. Positions shared by reference are compiled each for themselves; `$ref` does not occur."""
    additional = schema.get("additionalProperties")
    items = schema.get("items")
    int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    kind = schema.get("type")
    node = Node(
        raw=schema,
        types=("integer", "string") if int_or_string else ((kind,) if kind else ()),
        nullable=bool(schema.get("nullable")),
        properties={name: compile_schema(sub) for name, sub in (schema.get("properties") or {}).items()},
        additional=compile_schema(additional) if isinstance(additional, dict) else additional,
        items=compile_schema(items) if isinstance(items, dict) else None,
        required=tuple(schema.get("required") or ()),
        enum=schema.get("enum"),
        default=schema["default"] if schema.get("default") is not None else MISSING,
        preserve=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        list_type=schema.get("x-kubernetes-list-type", "atomic"),
        list_map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        minimum=_bound(schema, "minimum", "exclusiveMinimum"),
        maximum=_bound(schema, "maximum", "exclusiveMaximum"),
        multiple_of=schema.get("multipleOf"),
        min_length=schema.get("minLength"),
        max_length=schema.get("maxLength"),
        pattern=_pattern(schema.get("pattern")),
        min_items=schema.get("minItems"),
        max_items=schema.get("maxItems"),
        min_properties=schema.get("minProperties"),
        max_properties=schema.get("maxProperties"),
        branches={
            name: [compile_schema(sub) for sub in schema[name]]
            for name in ("allOf", "anyOf", "oneOf")
            if schema.get(name)
        },
        negation=compile_schema(schema["not"]) if isinstance(schema.get("not"), dict) else None,
        rules=list(schema.get("x-kubernetes-validations") or ()),
    )
    node.format, node.format_check = _format(schema, node.types)
    children = node.children()
    node.has_rules = bool(node.rules) or any(child.has_rules for child in children)
    node.has_list_types = node.list_type in ("set", "map") or any(child.has_list_types for child in children)
    return node


def _bound(schema: Json, limit: str, exclusive: str) -> tuple[float, bool] | None:
    return (schema[limit], bool(schema.get(exclusive))) if schema.get(limit) is not None else None


def _pattern(pattern: str | None) -> tuple[str, re.Pattern[str]] | None:
    return (pattern, compile_pattern(pattern)) if pattern else None


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A Go pattern for Python's engine: `$` is the very end of the text, classes are ASCII."""
    translated, in_class, escaped = [], False, False
    for char in pattern:
        if escaped:
            translated.append("\\Z" if char == "z" and not in_class else "\\" + char)
            escaped = False
            continue
        if char == "\\":
            escaped = True
            continue
        if char in "[]":
            in_class = char == "["
        translated.append("\\Z" if char == "$" and not in_class else char)
    return re.compile("".join(translated), re.ASCII)


def _format(schema: Json, types: tuple[str, ...]) -> tuple[str, Callable[[str], bool] | None]:
    """The format as far as the real server knows it; unknown ones are ignored."""
    name = schema.get("format", "")
    if not types or "string" in types:
        check = string_format(name)
        return (name, check) if check else ("", None)
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(types[0], ())
    return (name, None) if name in known else ("", None)
