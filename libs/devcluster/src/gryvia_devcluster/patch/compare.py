"""What changed between two objects, as field sets.

The semantics are structured-merge-diff's: a value that appears is a member with everything below it; a struct, map or
list that was there already is not; two empty or null containers compare as leaves. Added and modified paths are one
set, because ownership never asks which it was. Equal subtrees are skipped with one C-level comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from gryvia_devcluster.patch.fieldset import MEMBER, FieldSet
from gryvia_devcluster.patch.topology import Node, Shape, item_key
from gryvia_devcluster.types import Json


class Absent:
    """No value at all, as opposed to null."""


ABSENT = Absent()


def children(node: Node, value: Any) -> Iterator[tuple[str, Node, Any]]:
    """The separately owned parts of a value: path element, node, value. Items without a usable key are left out."""
    if node.shape is Shape.MAP:
        if isinstance(value, dict):
            for key, sub in value.items():
                yield "f:" + key, node.child(key), sub
    elif node.shape is not Shape.LEAF and isinstance(value, list) and node.elem is not None:
        for item in value:
            path = item_key(node, item)
            if path is not None:
                yield path, node.elem, item


def is_container(node: Node, value: Any) -> bool:
    if node.shape is Shape.MAP:
        return isinstance(value, dict)
    return node.shape is not Shape.LEAF and isinstance(value, list)


def full_set(node: Node, value: Any) -> FieldSet:
    """The node of a value that appeared or vanished as a whole."""
    if not is_container(node, value) or not value:
        return {}
    out: FieldSet = {MEMBER: {}}
    for path, child, sub in children(node, value):
        out[path] = full_set(child, sub)
    return out


def compare(node: Node, old: Any, new: Any) -> tuple[FieldSet, FieldSet]:
    """(added or modified, removed) between two present values of a container type, as roots."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    if node.shape is Shape.MAP:
        before, after = old or {}, new or {}
        for key, value in after.items():
            earlier = before.get(key, ABSENT)
            if earlier is not value and not _identical(earlier, value):
                _compare_child("f:" + key, node.child(key), earlier, value, changed, removed)
        for key, value in before.items():
            if key not in after:
                _compare_child("f:" + key, node.child(key), value, ABSENT, changed, removed)
    elif node.elem is not None:
        before, after = _index(node, old), _index(node, new)
        for path, value in after.items():
            _compare_child(path, node.elem, before.get(path, ABSENT), value, changed, removed)
        for path, value in before.items():
            if path not in after:
                _compare_child(path, node.elem, value, ABSENT, changed, removed)
    return changed, removed


def _identical(left: Any, right: Any) -> bool:
    """Equality that tells true from 1, which Python's does not. Not so sure of equal maps in another order: they are
    compared key by key then."""
    if left != right:
        return False
    return isinstance(left, str) or orjson.dumps(left) == orjson.dumps(right)


def _differs(left: Any, right: Any) -> bool:
    """The same for whole values, where the order of keys must not matter."""
    if left != right:
        return True
    if isinstance(left, str):
        return False
    return orjson.dumps(left, option=orjson.OPT_SORT_KEYS) != orjson.dumps(right, option=orjson.OPT_SORT_KEYS)


def _index(node: Node, items: Any) -> Json:
    """Items by path element. Duplicates of one key are compared together, as a whole."""
    out: Json = {}
    repeated: dict[str, list[Any]] = {}
    for item in items or ():
        path = item_key(node, item)
        if path is None:
            continue
        if path in out:
            repeated.setdefault(path, [out[path]]).append(item)
        else:
            out[path] = item
    return {**out, **repeated}


def _compare_child(path: str, node: Node, old: Any, new: Any, changed: FieldSet, removed: FieldSet) -> None:
    if node.inline:
        old = type(new)() if old is ABSENT and is_container(node, new) else old
        new = type(old)() if new is ABSENT and is_container(node, old) else new
    if old is ABSENT:
        changed[path] = full_set(node, new)
    elif new is ABSENT:
        removed[path] = full_set(node, old)
    elif (is_container(node, old) and (is_container(node, new) or new is None) and (old or new)) or (
        old is None and is_container(node, new) and new
    ):
        below, gone = compare(node, old, new)
        if below:
            changed[path] = below
        if gone:
            removed[path] = gone
    elif _differs(old, new):
        changed[path] = full_set(node, new) if is_container(node, new) and old is not None else {}
        below = {key: sub for key, sub in full_set(node, old).items() if key != MEMBER}
        if below and not is_container(node, new):
            removed[path] = below
