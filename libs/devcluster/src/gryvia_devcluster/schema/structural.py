"""The passes an object goes through on its way into the store, over one compiled schema: prune, default, validate."""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.patch.copying import deep_copy
from gryvia_devcluster.schema.causes import BLOCKING, Cause, invalid
from gryvia_devcluster.schema.listtype import duplicates
from gryvia_devcluster.schema.node import META_FIELDS, MISSING, OBJECT_META_FIELDS, Node, compile_schema
from gryvia_devcluster.schema.rules import RuleSet
from gryvia_devcluster.schema.values import check_value
from gryvia_devcluster.types import Json

UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


class Structural:
    """A custom resource's schema, compiled once and used for every object of its type."""

    def __init__(self, schema: Json) -> None:
        self._root = compile_schema(schema)
        self._root.embedded = True
        self._rules = RuleSet(self._root) if self._root.has_rules else None

    def prune(self, obj: Json) -> list[str]:
        """Removes, in place, the fields the schema does not know; returns their dotted paths, sorted."""
        unknown: list[str] = []
        _prune(self._root, obj, "", unknown)
        return sorted(unknown)

    def default(self, obj: Json) -> None:
        """Fills in defaults, in place: only inside parents that are there, and for nulls that may not be null."""
        _default(self._root, obj)

    def validate(self, obj: Json, old: Json | None, *, blocked: bool = False) -> list[Cause]:
        """The causes to refuse `obj` for, [] where it is valid. With `old`, fields that did not change are not held
        against it (ratcheting) and transition rules are checked. `blocked`: so much is wrong elsewhere that rules are left
        out."""
        causes: list[Cause] = []
        check_value(self._root, obj, old, "", causes)
        if causes:
            causes = [cause for index, cause in enumerate(causes) if cause not in causes[:index]]
        if self._root.has_list_types:
            repeated = duplicates(self._root, obj, "")
            if repeated and not (old is not None and duplicates(self._root, old, "")):
                causes += repeated
        if self._rules is not None:
            if blocked or any(cause["reason"] in BLOCKING for cause in causes):
                causes.append(invalid("", None, UNCHECKED))
            else:
                causes += self._rules.check(obj, old)
        return causes


def prune_value(node: Node, value: Any) -> list[str]:
    """The same for a value at any position of a schema."""
    unknown: list[str] = []
    _prune(node, value, "", unknown)
    return sorted(unknown)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _prune(node: Node | None, value: Any, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        for key in list(value):
            if node is not None and node.embedded and key in META_FIELDS:
                if key == "metadata":
                    _prune_metadata(value[key], _join(path, key), unknown)
                continue
            child = node.field(key) if node is not None else None
            if child is not None:
                _prune(child, value[key], _join(path, key), unknown)
            elif node is None or not (node.preserve or node.additional):
                unknown.append(_join(path, key))
                del value[key]
    elif isinstance(value, list):
        items = node.items if node is not None else None
        if node is not None and node.preserve and items is None:
            return
        for index, item in enumerate(value):
            _prune(items, item, f"{path}[{index}]", unknown)


def _prune_metadata(metadata: Any, path: str, unknown: list[str]) -> None:
    if isinstance(metadata, dict):
        for key in [key for key in metadata if key not in OBJECT_META_FIELDS]:
            unknown.append(f"{path}.{key}")
            del metadata[key]


def _default(node: Node, value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, each in value.items() if each is None]:
            child = node.field(key)
            if child is not None and not child.nullable:
                if child.default is MISSING:
                    del value[key]
                else:
                    value[key] = deep_copy(child.default)
        for key, child in node.properties.items():
            if child.default is not MISSING and key not in value:
                value[key] = deep_copy(child.default)
        for key, each in value.items():
            if isinstance(each, dict | list):
                child = node.field(key)
                if child is not None:
                    _default(child, each)
    elif isinstance(value, list) and node.items is not None:
        items = node.items
        for index, item in enumerate(value):
            if item is None and not items.nullable and items.default is not MISSING:
                value[index] = item = deep_copy(items.default)
            if isinstance(item, dict | list):
                _default(items, item)
