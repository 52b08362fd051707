"""The two value operations of server-side apply: merge a configuration over the live object, and remove what was given
up.

List items keep the applied order, with live-only items where they were (structured-merge-diff's rule). Nothing is
mutated; unchanged parts are shared, so callers copy once at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gryvia_devcluster.patch.compare import ABSENT, is_container
from gryvia_devcluster.patch.fieldset import FieldSet, is_member
from gryvia_devcluster.patch.topology import Node, Shape, item_key


def merge(node: Node, live: Any, applied: Any) -> Any:
    if not is_container(node, live) or not live:
        return applied
    if applied is None or (is_container(node, applied) and not applied):
        return live
    if not is_container(node, applied):
        return applied
    if node.shape is Shape.MAP:
        out = dict(live)
        for key, value in applied.items():
            if key in live and (value is None or isinstance(value, dict | list)):
                value = merge(node.child(key), live[key], value)
            out[key] = value
        return out
    return _merge_lists(node, live, applied)


def _merge_lists(node: Node, live: list[Any], applied: list[Any]) -> list[Any]:
    right = {item_key(node, item): item for item in applied}
    left_keys = [item_key(node, item) for item in live]
    left: dict[str | None, Any] = {}
    for key, item in zip(left_keys, live, strict=True):
        left[key] = ABSENT if key in left else item
    shared = [key for key in right if key in left]
    elem = node.elem
    assert elem is not None
    out: list[Any] = []
    done: set[str | None] = set()
    order = list(right)

    def take(key: str | None) -> None:
        done.add(key)
        mine = left.get(key, ABSENT)
        out.append(right[key] if mine is ABSENT else merge(elem, mine, right[key]))
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
            path = "f:" + key
            left = sub if path not in last else _remove_child(node.child(key), path, sub, last, others, node.named(key))
            if left is not ABSENT:
                kept[key] = left
        return kept
    elem = node.elem
    assert elem is not None
    items = []
    for item in value:
        path = item_key(node, item)
        left = item if path not in last else _remove_child(elem, path, item, last, others, False)
        if left is not ABSENT:
            items.append(left)
    return items


def _remove_child(node: Node, path: str, value: Any, last: FieldSet, others: Sequence[FieldSet], named: bool) -> Any:
    mine = last[path]
    theirs = [fields[path] for fields in others if path in fields]
    owned = bool(theirs) if named else any(is_member(fields) for fields in theirs)
    if not owned and (named or is_member(mine)):
        return ABSENT
    if not value or not is_container(node, value):
        return value
    left = remove(node, value, mine, theirs)
    emptied = value and not left
    return ABSENT if emptied and not any(is_member(fields) for fields in theirs) and not node.inline else left
