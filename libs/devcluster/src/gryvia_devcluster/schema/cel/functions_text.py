"""The functions of Kubernetes' CEL library on text and lists: cel-go's strings and lists extensions, and `find`,
`findAll`."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from gryvia_devcluster.schema.node import compile_pattern

# (function, receiver and parameter types, result type, is it a method, what it does); types by the names of
# `engine.TYPES`
Declaration = tuple[str, tuple[str, ...], str, bool, Callable[..., Any]]


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise ValueError(f"index out of range: {index}")
    return text[index : index + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= len(text) or not 0 <= stop <= len(text):
        raise ValueError(f"index out of range: {start if not 0 <= start <= len(text) else stop}")
    if start > stop:
        raise ValueError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        parts = list(text)
        return parts if limit < 0 or limit >= len(parts) else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator) if limit < 0 else text.split(separator, limit - 1)


def _index(items: list[Any], wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if _same(item, wanted)), -1)


def _last_index(items: list[Any], wanted: Any) -> int:
    return next((index for index in reversed(range(len(items))) if _same(items[index], wanted)), -1)


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def _extreme(pick: Callable[[list[Any]], Any], name: str) -> Callable[[list[Any]], Any]:
    def of(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        return pick(items)

    return of


def _distinct(items: list[Any]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if _index(out, item) < 0:
            out.append(item)
    return out


def _find(text: str, pattern: str) -> str:
    found = compile_pattern(pattern).search(text)
    return found.group(0) if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group(0) for match in compile_pattern(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _format(template: str, values: list[Any]) -> str:
    """cel-go's `format`: %s, %d, %f, %e, %b, %x, %X, %o and %%."""
    out, position, index = [], 0, 0
    while position < len(template):
        char = template[position]
        if char != "%":
            out.append(char)
            position += 1
            continue
        end = position + 1
        while end < len(template) and template[end] in ".0123456789":
            end += 1
        if end >= len(template):
            raise ValueError("unexpected end of string")
        verb = template[end]
        if verb == "%":
            out.append("%")
        else:
            if index >= len(values):
                raise ValueError(f"index {index} out of range")
            out.append(_format_one(verb, template[position + 1 : end], values[index]))
            index += 1
        position = end + 1
    return "".join(out)


def _format_one(verb: str, precision: str, value: Any) -> str:
    if verb == "s":
        return _text(value)
    if verb in "fe" and isinstance(value, int | float):
        return f"{float(value):{precision or '.6'}{verb}}"
    if verb in "dbo" and isinstance(value, int):
        return format(int(value), verb)
    if verb in "xX":
        return format(value, verb) if isinstance(value, int) else format(value.encode().hex(), "s")
    raise ValueError(f"could not parse formatting clause: unrecognized formatting clause {json.dumps(verb)}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)}: {_text(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _flatten(items: list[Any]) -> list[Any]:
    return [inner for item in items for inner in (item if isinstance(item, list) else [item])]


def _contains_all(items: list[Any], wanted: list[Any]) -> bool:
    return all(_index(items, each) >= 0 for each in wanted)


_S, _L, _I, _B, _D = "string", "list", "int", "bool", "dyn"

TEXT_FUNCTIONS: list[Declaration] = [
    ("charAt", (_S, _I), _S, True, _char_at),
    ("indexOf", (_S, _S), _I, True, str.find),
    ("indexOf", (_S, _S, _I), _I, True, str.find),
    ("lastIndexOf", (_S, _S), _I, True, str.rfind),
    ("lastIndexOf", (_S, _S, _I), _I, True, lambda text, part, end: text.rfind(part, 0, end + len(part))),
    ("lowerAscii", (_S,), _S, True, lambda text: text.encode().lower().decode()),
    ("upperAscii", (_S,), _S, True, lambda text: text.encode().upper().decode()),
    ("replace", (_S, _S, _S), _S, True, str.replace),
    ("replace", (_S, _S, _S, _I), _S, True, str.replace),
    ("split", (_S, _S), _L, True, _split),
    ("split", (_S, _S, _I), _L, True, _split),
    ("substring", (_S, _I), _S, True, _substring),
    ("substring", (_S, _I, _I), _S, True, _substring),
    ("trim", (_S,), _S, True, str.strip),
    ("join", (_L,), _S, True, "".join),
    ("join", (_L, _S), _S, True, lambda items, separator: separator.join(items)),
    ("format", (_S, _L), _S, True, _format),
    ("strings.quote", (_S,), _S, False, lambda text: json.dumps(text, ensure_ascii=False)),
    ("find", (_S, _S), _S, True, _find),
    ("findAll", (_S, _S), _L, True, _find_all),
    ("findAll", (_S, _S, _I), _L, True, _find_all),
    ("isSorted", (_L,), _B, True, lambda items: all(left <= right for left, right in pairwise(items))),
    ("sum", (_L,), _D, True, sum),
    ("min", (_L,), _D, True, _extreme(min, "min")),
    ("max", (_L,), _D, True, _extreme(max, "max")),
    ("indexOf", (_L, _D), _I, True, _index),
    ("lastIndexOf", (_L, _D), _I, True, _last_index),
    ("distinct", (_L,), _L, True, _distinct),
    ("flatten", (_L,), _L, True, _flatten),
    ("slice", (_L, _I, _I), _L, True, lambda items, start, end: items[start:end]),
    ("sort", (_L,), _L, True, sorted),
    ("reverse", (_L,), _L, True, lambda items: items[::-1]),
    ("sets.contains", (_L, _L), _B, False, _contains_all),
    ("sets.equivalent", (_L, _L), _B, False, lambda a, b: _contains_all(a, b) and _contains_all(b, a)),
    ("sets.intersects", (_L, _L), _B, False, lambda a, b: any(_index(a, each) >= 0 for each in b)),
]
