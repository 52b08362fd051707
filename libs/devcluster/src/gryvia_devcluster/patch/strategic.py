"""Strategic merge patch for the built-in types: a merge patch that knows which lists have keys, and obeys `$`
directives.

The order of a merged list is upstream's: items the patch names keep the patch's order, the server's own items keep
theirs, and the two are interleaved by the live order, so a new item comes before the live ones. Custom resources do not
support it; refusing them (415) is the API server's part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.gotext import go_text
from gryvia_devcluster.patch.builtin import builtin_topology
from gryvia_devcluster.patch.copying import deep_copy
from gryvia_devcluster.patch.topology import LEAF, STRUCT, Node
from gryvia_devcluster.types import Json

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"
ELEMENT_ORDER = "$setElementOrder/"


def strategic_merge_patch(obj: Json, patch: Any, kind: tuple[str, str]) -> Json:
    """A new object; `kind` is (group, kind). Raises ApiError for a malformed directive or an item without its merge
    key."""
    if not isinstance(patch, dict):
        raise ApiError(
            "BadRequest", "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}"
        )
    return _merge_map(builtin_topology(kind), deep_copy(obj), deep_copy(patch))


def _merge_map(node: Node, original: Json, patch: Json) -> Json:
    directive = patch.get(DIRECTIVE)
    if directive not in (None, "merge", "replace", "delete"):
        raise _unknown_directive(directive, patch)
    patch.pop(DIRECTIVE, None)
    if directive == "replace":
        return patch
    if directive == "delete":
        return {}
    _retain(original, patch)
    orders = {key[len(ELEMENT_ORDER) :]: patch.pop(key) for key in list(patch) if key.startswith(ELEMENT_ORDER)}
    for key in [key for key in patch if key.startswith(DELETE_PRIMITIVES)]:
        _delete_primitives(original, key[len(DELETE_PRIMITIVES) :], patch.pop(key))
    for key, value in patch.items():
        if value is None:
            original.pop(key, None)
            continue
        child, current = node.fields.get(key) or node.elem or STRUCT, original.get(key)
        if isinstance(value, dict):
            original[key] = _merge_map(child, current if isinstance(current, dict) else {}, value)
        elif isinstance(value, list) and child.merge_key is not None:
            live = current if isinstance(current, list) else []
            original[key] = _merge_list(child, live, value, orders.pop(key, None))
        else:
            original[key] = _replacement(value)
    for key, order in orders.items():
        child = node.fields.get(key) or node.elem or STRUCT
        if isinstance(original.get(key), list) and child.merge_key is not None:
            original[key] = _merge_list(child, original[key], [], order)
    return original


def _replacement(value: Any) -> Any:
    """A value that is not merged: a directive in a replaced list has nothing to act on and goes, as nulls do."""
    if isinstance(value, dict):
        return {key: _replacement(each) for key, each in value.items() if each is not None and key[:1] != "$"}
    if isinstance(value, list):
        return [_replacement(item) for item in value if not (isinstance(item, dict) and DIRECTIVE in item)]
    return value


def _retain(original: Json, patch: Json) -> None:
    keys = patch.pop(RETAIN_KEYS, None)
    if keys is None:
        return
    if not isinstance(keys, list) or any(not isinstance(key, str) for key in keys):
        raise ApiError("BadRequest", "invalid patch format of retainKeys")
    if any(value is not None and key not in keys for key, value in patch.items() if not key.startswith("$")):
        raise ApiError("Invalid", "the server rejected our request due to an error in our request")
    for key in [key for key in original if key not in keys]:
        del original[key]


def _delete_primitives(original: Json, key: str, values: Any) -> None:
    if not isinstance(values, list):
        raise ApiError("BadRequest", "invalid patch format of primitive list")
    current = original.get(key)
    if isinstance(current, list):
        original[key] = [item for item in current if item not in values]


def _merge_list(node: Node, live: list[Any], patch: list[Any], order: Any) -> list[Any]:
    if order is not None and not isinstance(order, list):
        raise ApiError("BadRequest", "invalid patch format of setElementOrder list")
    if node.merge_key == "":
        _check_order(patch, patch if order is None else order, patch, order)
        merged = list(dict.fromkeys([*live, *patch]))
        return _interleave(merged, patch if order is None else order, live, lambda item: item)
    key = node.merge_key or ""

    def identity(item: Any) -> Any:
        if not isinstance(item, dict) or key not in item:
            raise ApiError("", f"map: {go_text(item)} does not contain declared merge key: {key}")
        return item[key]

    merged = list(live)
    named = []
    for item in patch:
        directive = item.get(DIRECTIVE) if isinstance(item, dict) else None
        if directive == "replace":
            if order is not None:
                _check_order([None], [], patch, order)
            return [each for each in patch if each.get(DIRECTIVE) is None]
        if directive not in (None, "merge", "delete"):
            raise _unknown_directive(directive, item)
        name = identity(item)
        place = next((index for index, each in enumerate(merged) if identity(each) == name), None)
        if directive == "delete":
            merged = [each for each in merged if identity(each) != name]
            continue
        named.append(name)
        elem = node.elem if node.elem is not None and node.elem is not LEAF else STRUCT
        if place is None:
            merged.append(_merge_map(elem, {}, item))
        else:
            merged[place] = _merge_map(elem, merged[place], item)
    wanted = named if order is None else [identity(each) for each in order]
    _check_order(named, wanted, patch, order)
    return _interleave(merged, wanted, [identity(each) for each in live], identity)


def _check_order(named: list[Any], wanted: list[Any], patch: list[Any], order: Any) -> None:
    """What the patch names has to come in the order the directive gives."""
    places = iter(wanted)
    if not all(name in places for name in named):
        text = (
            f"The order in patch list:\n{go_text(patch)}\n doesn't match {ELEMENT_ORDER[:-1]} list:\n{go_text(order)}\n"
        )
        raise ApiError("", text)


def _interleave(merged: list[Any], wanted: list[Any], live: list[Any], identity: Callable[[Any], Any]) -> list[Any]:
    """Items that the patch orders and the others, each in their own order, by their relative place in the live list."""
    ordered = sorted(
        (item for item in merged if identity(item) in wanted), key=lambda item: wanted.index(identity(item))
    )
    others = [item for item in merged if identity(item) not in wanted]
    out: list[Any] = []
    while ordered and others:
        left, right = identity(others[0]), identity(ordered[0])
        earlier = left in live and right in live and live.index(left) < live.index(right)
        out.append((others if earlier else ordered).pop(0))
    return out + ordered + others


def _unknown_directive(directive: Any, patch: Json) -> ApiError:
    return ApiError("", f"unknown patch type: {directive} in map: {go_text(patch)}")
