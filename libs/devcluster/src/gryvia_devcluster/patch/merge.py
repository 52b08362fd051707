"""The two value operations of server-side apply: merge a configuration over the live object, and remove what was given
up.

List items keep the applied order, with live-only items where they were (structured-merge-diff's rule). Nothing is
mutated; unchanged parts are shared, so callers copy once at the end.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch.compare import ABSENT, is_container
from gryvia_devcluster.patch.fieldset import FieldSet, is_member
from gryvia_devcluster.patch.topology import Node, Shape, item_key


def merge(node: Node, live: Any, applied: Any, where: str = "") -> Any:
    if not is_container(node, applied) or not is_container(node, live) or not (live and applied):
        if applied is None and is_container(node, live):
            return live
        if is_container(node, applied) and not applied and is_container(node, live):
            return live if live else applied
        if node.shape in (Shape.SET, Shape.KEYED) and isinstance(applied, list):
            _applied_items(node, applied, where)
        return applied
    if node.shape is Shape.MAP:
        out = dict(live)
        for key, value in applied.items():
            out[key] = merge(node.child(key), live[key], value, f"{where}.{key}") if key in live else value
        return out
    return _merge_lists(node, live, applied, where)


def _applied_items(node: Node, applied: list[Any], where: str) -> dict[str, Any]:
    """Applied items by path element; a missing key or a duplicate is refused, as the typed parser of the real server
    does."""
    out: dict[str, Any] = {}
    for index, item in enumerate(applied):
        path = item_key(node, item)
        if path is None:
            raise _malformed(node, where, index, item)
        if path in out:
            raise ApiError("InternalError", f"{where}: duplicate entries for key {element_text(path)}")
        out[path] = item
    return out


def _malformed(node: Node, where: str, index: int, item: Any) -> ApiError:
    if node.shape is Shape.SET:
        kind = "a map type" if isinstance(item, dict) else "an explicit null" if item is None else "a list type"
        text = f"associative list without keys has an element that's {kind}"
    elif isinstance(item, dict):
        names = " ".join(f'"{key}"' for key in node.keys)
        text = (
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    else:
        kind = "a null element" if item is None else "non-map elements"
        text = f"associative list with keys may not have {kind}"
    return ApiError("InternalError", f"failed to create typed patch object: {where}: element {index}: {text}")


def _merge_lists(node: Node, live: list[Any], applied: list[Any], where: str) -> list[Any]:
    right = _applied_items(node, applied, where)
    left_keys = [item_key(node, item) for item in live]
    left: dict[str | None, Any] = {}
    for key, item in zip(left_keys, live, strict=True):
        left[key] = ABSENT if key in left else item
    shared = [key for key in right if key in left]
    elem = node.elem
    assert elem is not None
    out: list[Any] = []
    done: set[str] = set()
    order = list(right)

    def take(key: str) -> None:
        done.add(key)
        mine = left.get(key, ABSENT)
        out.append(right[key] if mine is ABSENT else merge(elem, mine, right[key], f"{where}{element_text(key)}"))
        if shared and shared[0] == key:
            shared.pop(0)

    position = following = 0
    while position < len(live) or following < len(order):
        if position < len(live):
            key = left_keys[position]
            if key not in right:
                out.append(live[position])
                position += 1
                continue
            if key in done or (shared and shared[0] != key and following < len(order) and key != order[following]):
                position += 1
                continue
            if following < len(order) and key == order[following]:
                position += 1
        if following < len(order):
            take(order[following])
            following += 1
    return out


def remove(node: Node, value: Any, last: FieldSet, others: Sequence[FieldSet]) -> Any:
    """`value` without what `last` claims and no set in `others` does. Roots of one container; ABSENT if nothing is left
    of a list or map that had something."""
    if node.shape is Shape.MAP:
        kept: Any = {}
        for key, sub in value.items():
            left = _remove_child(node, node.child(key), "f:" + key, sub, last, others, named=node.named(key))
            if left is not ABSENT:
                kept[key] = left
        return kept
    elem = node.elem
    assert elem is not None
    items = []
    for item in value:
        path = item_key(node, item)
        left = item if path is None else _remove_child(node, elem, path, item, last, others, named=False)
        if left is not ABSENT:
            items.append(left)
    return items


def _remove_child(
    parent: Node, node: Node, path: str, value: Any, last: FieldSet, others: Sequence[FieldSet], *, named: bool
) -> Any:
    mine = last.get(path)
    if mine is None:
        return value
    theirs = [fields[path] for fields in others if path in fields]
    owned = bool(theirs) if named else any(is_member(fields) for fields in theirs)
    if not owned and (named or is_member(mine)):
        return ABSENT
    if not value or not is_container(node, value):
        return value
    left = remove(node, value, mine, theirs)
    emptied = value and not left
    return ABSENT if emptied and not any(is_member(fields) for fields in theirs) and not node.inline else left


def element_text(path: str) -> str:
    """A path element as the real server prints it: `.name`, `[name="a",port=80]` or `[="x"]`."""
    if path.startswith("f:"):
        return "." + path[2:]
    if path.startswith("v:"):
        return f"[={path[2:]}]"
    pairs = json.loads(path[2:])
    return "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in pairs.items()) + "]"
