"""Uniqueness in lists of type set and map, which OpenAPI cannot say. A key or element is named at its second
appearance."""

from __future__ import annotations

from typing import Any

import orjson

from gryvia_devcluster.schema.causes import Cause, duplicate, invalid
from gryvia_devcluster.schema.node import Node


def duplicates(node: Node, value: Any, path: str) -> list[Cause]:
    if not node.has_list_types:
        return []
    out: list[Cause] = []
    if isinstance(value, dict):
        for key, each in value.items():
            child = node.field(key)
            if child is not None and child.has_list_types:
                named = key in node.properties
                out += duplicates(child, each, (f"{path}.{key}" if path else key) if named else f"{path}[{key}]")
    elif isinstance(value, list):
        out += _in_list(node, value, path)
        if node.items is not None and node.items.has_list_types:
            for index, item in enumerate(value):
                out += duplicates(node.items, item, f"{path}[{index}]")
    return out


def _in_list(node: Node, items: list[Any], path: str) -> list[Cause]:
    if node.list_type == "set":
        return _repeated(items, path)
    if node.list_type != "map":
        return []
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            return [invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
    return _repeated(
        [{key: item[key] for key in node.list_map_keys if key in item} if item else {} for item in items], path
    )


def _repeated(values: list[Any], path: str) -> list[Cause]:
    seen: dict[bytes, int] = {}
    out = []
    for index, value in enumerate(values):
        key = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            out.append(duplicate(f"{path}[{index}]", value))
    return out
