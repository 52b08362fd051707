"""How the parts of a type merge: which maps and lists are whole values and which are made of separately owned items.

One tree of Node serves server-side apply, ownership and strategic merge patch, for custom resources (compiled from
their structural schema) and for built-in types (`builtin.py`) alike. A value that does not fit its node (a list where a
map is declared, a scalar in place of either) is a leaf: types are the validator's business. The terms are those of the
KEP on server-side apply: atomic, granular, set, map; `named` fields are a struct's, as opposed to the keys of a map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import orjson

from gryvia_devcluster.types import Json


class Shape(IntEnum):
    LEAF = 0
    MAP = 1
    SET = 2
    KEYED = 3


@dataclass(slots=True, eq=False)
class Node:
    """`open_struct`: unknown keys count as named fields. `inline`: a Go struct held by value, so its absence means
    `{}`. `merge_key`: strategic merge patch joins list items by it ("" for primitives, None replaces the list)."""

    shape: Shape
    fields: Mapping[str, Node] = field(default_factory=dict)
    elem: Node | None = None
    open_struct: bool = False
    inline: bool = False
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=dict)
    merge_key: str | None = None
    retain_keys: bool = False

    def child(self, key: str) -> Node:
        return self.fields.get(key) or self.elem or LEAF

    def named(self, key: str) -> bool:
        return self.open_struct or key in self.fields


LEAF = Node(Shape.LEAF)
# A value without a schema: maps are granular, lists are whole values.
DEDUCED = Node(Shape.MAP)
DEDUCED.elem = DEDUCED
# A built-in type's struct of which nothing special is known.
STRUCT = Node(Shape.MAP, open_struct=True)
STRUCT.elem = STRUCT
GRANULAR_MAP = Node(Shape.MAP, elem=LEAF)
STRING_SET = Node(Shape.SET, elem=LEAF, merge_key="")


def struct(fields: Mapping[str, Node], *, inline: bool = False, retain_keys: bool = False) -> Node:
    return Node(Shape.MAP, fields=fields, elem=STRUCT, open_struct=True, inline=inline, retain_keys=retain_keys)


def keyed(
    keys: str | tuple[str, ...],
    elem: Node,
    *,
    defaults: Mapping[str, Any] | None = None,
    merge_key: str | None = None,
    inline: bool = False,
) -> Node:
    names = (keys,) if isinstance(keys, str) else tuple(sorted(keys))
    return Node(
        Shape.KEYED,
        elem=elem,
        keys=names,
        key_defaults=defaults or {},
        merge_key=merge_key or (keys if isinstance(keys, str) else keys[0]),
        inline=inline,
    )


OBJECT_META = struct(
    {
        "labels": GRANULAR_MAP,
        "annotations": GRANULAR_MAP,
        "finalizers": STRING_SET,
        "ownerReferences": keyed("uid", LEAF),
    },
    inline=True,
)


def item_key(node: Node, item: Any) -> str | None:
    """The path element of a list item (`k:{...}` or `v:...`), None where the item has no usable key."""
    if node.shape is Shape.SET:
        if isinstance(item, dict | list) or item is None:
            return None
        return "v:" + orjson.dumps(item).decode()
    if not isinstance(item, dict):
        return None
    found = {}
    for name in node.keys:
        if name in item:
            found[name] = item[name]
        elif name in node.key_defaults:
            found[name] = node.key_defaults[name]
    return "k:" + orjson.dumps(found).decode() if found else None


def from_schema(schema: Json) -> Node:
    """The topology of a custom resource, from its structural schema."""
    root = _compile(schema)
    fields = dict(root.fields) if root.shape is Shape.MAP else {}
    fields |= {"apiVersion": LEAF, "kind": LEAF, "metadata": OBJECT_META}
    return Node(Shape.MAP, fields=fields, elem=root.elem if root.shape is Shape.MAP else DEDUCED)


def _compile(schema: Json) -> Node:
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        return LEAF
    if kind == "array":
        return _compile_list(schema)
    if kind == "object" or "properties" in schema:
        if schema.get("x-kubernetes-map-type") == "atomic":
            return LEAF
        fields = {name: _compile(sub) for name, sub in schema.get("properties", {}).items()}
        if schema.get("x-kubernetes-embedded-resource"):
            fields |= {"apiVersion": LEAF, "kind": LEAF, "metadata": OBJECT_META}
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            return Node(Shape.MAP, fields=fields, elem=_compile(extra) if extra else DEDUCED)
        return Node(Shape.MAP, fields=fields, elem=DEDUCED)
    return DEDUCED if schema.get("x-kubernetes-preserve-unknown-fields") else LEAF


def _compile_list(schema: Json) -> Node:
    list_type = schema.get("x-kubernetes-list-type", "atomic")
    items: Json = schema.get("items", {})
    if list_type == "set":
        return STRING_SET
    if list_type == "map":
        keys = tuple(sorted(schema.get("x-kubernetes-list-map-keys", ())))
        properties = items.get("properties", {})
        defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
        return Node(Shape.KEYED, elem=_compile(items), keys=keys, key_defaults=defaults)
    return LEAF
