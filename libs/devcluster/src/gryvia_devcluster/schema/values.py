"""Validation of values against the OpenAPI part of a schema, in kube-openapi's order and words.

jsonschema-rs was the alternative: it is faster on large documents, but its messages and paths would have to be
translated one by one, and it knows neither ratcheting (an unchanged field is never held against an update) nor
`x-kubernetes-int-or-string`.
"""

from __future__ import annotations

from typing import Any

import orjson

from gryvia_devcluster.schema.causes import (
    Cause,
    invalid,
    not_supported,
    number,
    required,
    too_long,
    too_many,
    type_invalid,
)
from gryvia_devcluster.schema.node import Node


def check_value(node: Node, value: Any, old: Any, path: str, out: list[Cause]) -> None:
    """Appends what is wrong with `value`. `old` is the correlated value before an update, None where there is none."""
    if old is not None and kept(node, old, value):
        return
    _check_type(node, value, path, out)
    if node.branches or node.negation is not None:
        _check_branches(node, value, path, out)
    if isinstance(value, str):
        _check_text(node, value, path, out)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(node, value, path, out)
    elif isinstance(value, list):
        _check_list(node, value, old, path, out)
    if node.enum is not None and not _in_enum(value, node.enum):
        out.append(not_supported(path, value, node.enum))
    if isinstance(value, dict):
        _check_object(node, value, old, path, out)


def unchanged(old: Any, value: Any) -> bool:
    """Equality as JSON has it: true is not 1, which Python's would allow."""
    if type(old) is not type(value) or old != value:
        return False
    if not isinstance(value, dict | list):
        return True
    sort = orjson.OPT_SORT_KEYS
    return orjson.dumps(old) == orjson.dumps(value) or orjson.dumps(old, option=sort) == orjson.dumps(
        value, option=sort
    )


def kept(node: Node, old: Any, value: Any) -> bool:
    """Whether a value is what it was; a keyed list may have been put into another order."""
    if unchanged(old, value):
        return True
    if node.list_type != "map" or not isinstance(old, list) or not isinstance(value, list) or len(old) != len(value):
        return False
    before = old_items(node, old)
    return all((key := item_key(node, item)) in before and unchanged(before[key], item) for item in value)


def _in_enum(value: Any, allowed: list[Any]) -> bool:
    """kube-openapi converts a number to the type of the allowed value first: 1.5 is in an enum that has the integer
    1."""
    for each in allowed:
        same = int(value) == each if isinstance(value, float) and type(each) is int else each == value
        if same and isinstance(each, bool) is isinstance(value, bool):
            return True
    return False


def json_type(value: Any) -> tuple[str, str]:
    """(type, format) of a value as kube-openapi infers them."""
    if value is None:
        return "null", ""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, int):
        return ("integer", "int64") if -(2**63) <= value < 2**63 else ("number", "float64")
    if isinstance(value, float):
        return "number", "float64"
    if isinstance(value, str):
        return "string", ""
    return ("array", "") if isinstance(value, list) else ("object", "")


def _check_type(node: Node, value: Any, path: str, out: list[Cause]) -> None:
    types = node.types
    if not types:
        return
    actual, form = json_type(value)
    if actual in types and value is not None:
        return
    if value is None:
        if not node.nullable:
            out.append(_wrong_type(path, ",".join(types), "null"))
        return
    if actual == "integer" and "number" in types:
        return
    if actual == "number" and "integer" in types and float(value).is_integer() and abs(value) < 2**53:
        return
    if node.format and isinstance(value, list) and "string" in types:
        return  # kube-openapi leaves a list in place of formatted text to the format, which looks at text only
    if node.format and not isinstance(value, str | list):
        out.append(_wrong_type(path, node.format, form))
    else:
        out.append(_wrong_type(path, ",".join(types), actual))


def _wrong_type(path: str, wanted: str, actual: str) -> Cause:
    return type_invalid(path, actual, f'{path} in body must be of type {wanted}: "{actual}"')


def _check_text(node: Node, value: str, path: str, out: list[Cause]) -> None:
    if node.max_length is not None and len(value) > node.max_length:
        out.append(too_long(path, node.max_length))
    if node.min_length is not None and len(value) < node.min_length:
        out.append(invalid(path, value, f"{path} in body should be at least {node.min_length} chars long"))
    if node.pattern is not None and node.pattern[1].search(value) is None:
        out.append(invalid(path, value, f"{path} in body should match '{node.pattern[0]}'"))
    if node.format_check is not None and not node.format_check(value):
        out.append(type_invalid(path, value, f'{path} in body must be of type {node.format}: "{value}"'))


def _check_number(node: Node, value: float, path: str, out: list[Cause]) -> None:
    if node.multiple_of is not None:
        ratio = value / node.multiple_of if node.multiple_of >= 1 else 1 / node.multiple_of * value
        if abs(ratio - round(ratio)) > 1e-9 * max(1.0, abs(ratio)):
            out.append(invalid(path, value, f"{path} in body should be a multiple of {number(node.multiple_of)}"))
    if node.maximum is not None:
        limit, exclusive = _limit(node.maximum, value)
        if value > limit or (exclusive and value == limit):
            words = "less than" if exclusive else "less than or equal to"
            out.append(invalid(path, value, f"{path} in body should be {words} {number(limit)}"))
    if node.minimum is not None:
        limit, exclusive = _limit(node.minimum, value)
        if value < limit or (exclusive and value == limit):
            words = "greater than" if exclusive else "greater than or equal to"
            out.append(invalid(path, value, f"{path} in body should be {words} {number(limit)}"))
    if node.types == ("integer",):
        size = 31 if node.format == "int32" else 63
        if not -(2**size) <= value < 2**size or (isinstance(value, float) and not value.is_integer()):
            form = f"with format {node.format}" if node.format else "(default format)"
            out.append(invalid("", "", f"Checked value must be of type integer {form} in {path}"))


def _limit(bound: tuple[float, bool], value: float) -> tuple[float, bool]:
    """kube-openapi compares an integer with the integer part of the bound."""
    return (int(bound[0]), bound[1]) if isinstance(value, int) else bound


def _check_list(node: Node, value: list[Any], old: Any, path: str, out: list[Cause]) -> None:
    items = node.items
    if items is not None:
        before = old_items(node, old)
        for index, item in enumerate(value):
            check_value(items, item, before.get(item_key(node, item)) if before else None, f"{path}[{index}]", out)
    if node.min_items is not None and len(value) < node.min_items:
        out.append(invalid(path, len(value), f"{path} in body should have at least {node.min_items} items"))
    if node.max_items is not None and len(value) > node.max_items:
        out.append(too_many(path, len(value), node.max_items))


def item_key(node: Node, item: Any) -> tuple[str, ...] | None:
    """What an item of a list of type map is found again by; None where it lacks a key or the list has none."""
    if node.list_type != "map" or not isinstance(item, dict) or any(key not in item for key in node.list_map_keys):
        return None
    return tuple(repr(item[key]) for key in node.list_map_keys)


def old_items(node: Node, old: Any) -> dict[tuple[str, ...] | None, Any]:
    """Items of the old list by key: only lists of type map can be correlated."""
    if node.list_type != "map" or not isinstance(old, list):
        return {}
    return {key: item for item in old if (key := item_key(node, item)) is not None}


def _check_object(node: Node, value: dict[str, Any], old: Any, path: str, out: list[Cause]) -> None:
    before = old if isinstance(old, dict) else {}
    if node.min_properties is not None and len(value) < node.min_properties:
        detail = f"{path} in body should have at least {node.min_properties} properties"
        out.append(invalid(path, len(value), detail))
    if node.max_properties is not None and len(value) > node.max_properties:
        out.append(too_many(path, len(value), node.max_properties))
    for key, each in value.items():
        child = node.field(key)
        if child is not None:
            check_value(child, each, before.get(key), f"{path}.{key}" if path else key, out)
        elif node.additional is False and key not in node.properties:
            out.append(invalid(path, key, f"{path}.{key} in body is a forbidden property"))
    out.extend(required(f"{path}.{key}" if path else key) for key in node.required if key not in value)


def _check_branches(node: Node, value: Any, path: str, out: list[Cause]) -> None:
    any_of = node.branches.get("anyOf")
    if any_of:
        failures = _failures(any_of, value, path)
        if all(failures):
            out.append(invalid("", "", f'"{path}" must validate at least one schema (anyOf)'))
            out.extend(_nearest(failures, value))
    one_of = node.branches.get("oneOf")
    if one_of:
        failures = _failures(one_of, value, path)
        valid = sum(not failed for failed in failures)
        if valid != 1:
            found = f"Found {valid} valid alternatives" if valid else "Found none valid"
            out.append(invalid("", "", f'"{path}" must validate one and only one schema (oneOf). {found}'))
            if not valid:
                out.extend(_nearest(failures, value))
    all_of = node.branches.get("allOf")
    if all_of:
        failures = _failures(all_of, value, path)
        out.extend(cause for failed in failures for cause in failed)
        if any(failures):
            none = ". None validated" if all(failures) else ""
            out.append(invalid("", "", f'"{path}" must validate all the schemas (allOf){none}'))
    if node.negation is not None and not _failures([node.negation], value, path)[0]:
        out.append(invalid("", "", f'"{path}" must not validate the schema (not)'))


def _nearest(failures: list[list[Cause]], value: Any) -> list[Cause]:
    """The branch that came closest; the first of several, and of a scalar, which has no parts that can be right, always."""
    if not isinstance(value, dict | list):
        return failures[0]
    return min(failures, key=lambda failed: len(failed))


def _failures(branches: list[Node], value: Any, path: str) -> list[list[Cause]]:
    out = []
    for branch in branches:
        causes: list[Cause] = []
        check_value(branch, value, None, path, causes)
        out.append(causes)
    return out
