"""Sets of field paths, kept in the very form of `managedFields[].fieldsV1`: nested dicts, so nothing is parsed or
rendered.

A key is a path element (`f:name`, `k:{...}` for a keyed item, `v:...` for a set item). A path is a member of the set if
its node is `{}` or holds the marker `.`; a node with other keys only leads to members. Invariant: no node without
members below it. Sets are immutable: every operation shares what it does not change. (A set of path tuples was the
alternative: it costs a parse and a render of every manager on every write.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

FieldSet = dict[str, Any]

MEMBER = "."
EMPTY: FieldSet = {}


def is_member(node: FieldSet) -> bool:
    return not node or MEMBER in node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Both arguments are roots or both are nodes below roots of which the same is asked."""
    if left is right or not right:
        return left
    if not left:
        return right
    out = dict(left)
    for key, sub in right.items():
        mine = out.get(key)
        if mine is None:
            out[key] = sub
        elif mine != sub:
            out[key] = _union_nodes(mine, sub)
    return out


def _union_nodes(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left:
        return right if MEMBER in right else {MEMBER: {}, **right}
    if not right:
        return left if MEMBER in left else {MEMBER: {}, **left}
    return union(left, right)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Members of `left` that are not members of `right`; paths below a member of `right` stay."""
    if not left or not right:
        return left
    out = {}
    for key, sub in left.items():
        other = right.get(key) if key != MEMBER else None
        if other is None:
            out[key] = sub
            continue
        rest = _subtract(sub, other)
        if rest is not None:
            out[key] = rest
    return out


def _subtract(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if not left:
        return None if is_member(right) else left
    out = difference(left, right)
    if MEMBER in out and is_member(right):
        out = {key: sub for key, sub in out.items() if key != MEMBER}
        return out or None
    if len(out) == 1 and MEMBER in out:
        return {}
    return out or None


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    out: FieldSet = {}
    for key, sub in left.items():
        other = right.get(key)
        if other is None or key == MEMBER:
            continue
        both = is_member(sub) and is_member(other)
        below = intersection(sub, other) if sub and other else EMPTY
        if both:
            out[key] = {MEMBER: {}, **below} if below else {}
        elif below:
            out[key] = below
    return out


def members(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every member path, parents first, in sorted order."""
    for key in sorted(fields):
        if key == MEMBER:
            continue
        path = (*prefix, key)
        if is_member(fields[key]):
            yield path
        yield from members(fields[key], path)


def members_first(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every member path in the order of the real server's sets: at each level the members, then what is below."""
    keys = [key for key in sorted(fields) if key != MEMBER]
    yield from ((*prefix, key) for key in keys if is_member(fields[key]))
    for key in keys:
        yield from members_first(fields[key], (*prefix, key))


def from_members(paths: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> FieldSet:
    """The inverse of `members`."""
    root: FieldSet = {}
    for path in paths:
        leaf: FieldSet = {}
        for key in reversed(path):
            leaf = {key: leaf}
        root = union(root, leaf)
    return root


def has(fields: FieldSet, path: tuple[str, ...]) -> bool:
    node = fields
    for key in path:
        if key not in node:
            return False
        node = node[key]
    return is_member(node)
