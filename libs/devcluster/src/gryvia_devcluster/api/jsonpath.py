"""The part of kubectl's JSONPath that printer columns use: fields, escaped dots, indexes, `[*]` and `[?(@.a=="b")]`.

Compiled once per expression into steps; a step maps a list of values to a list of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

Step = Callable[[list[Any]], list[Any]]
_TOKEN = re.compile(
    r"""\.(?P<field>(?:[^.\[\]\\]|\\.)+)
      | \[\s*\?\(\s*@(?P<path>[^=!<>]*?)\s*(?P<op>==|!=)\s*(?P<quoted>"[^"]*"|'[^']*'|[^\s)]+)\s*\)\s*\]
      | \[\s*(?P<index>-?\d+)\s*\]
      | \[\s*(?P<star>\*)\s*\]
      | \[\s*(?P<key>"[^"]*"|'[^']*')\s*\]""",
    re.VERBOSE,
)


@lru_cache(maxsize=1024)
def compile_path(path: str) -> tuple[Step, ...]:
    """Raises ValueError for what is not understood."""
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if text and text[0] not in ".[":
        text = "." + text
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise ValueError(f"cannot read the JSONPath {path!r} at {text[position:]!r}")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["index"] is not None:
        index = int(match["index"])
        return lambda values: [v[index] for v in values if isinstance(v, list) and -len(v) <= index < len(v)]
    if match["star"]:
        return lambda values: [item for v in values for item in _children(v)]
    if match["op"]:
        return _filter(match["path"], match["op"], match["quoted"])
    name = match["key"][1:-1] if match["key"] else re.sub(r"\\(.)", r"\1", match["field"])
    return lambda values: [v[name] for v in values if isinstance(v, dict) and v.get(name) is not None]


def _filter(path: str, operator: str, quoted: str) -> Step:
    inner = compile_path(path)
    wanted = quoted[1:-1] if quoted[0] in "\"'" else quoted

    def keep(item: Any) -> bool:
        found = evaluate(inner, item)
        equal = bool(found) and _text(found[0]) == wanted
        return equal is (operator == "==")

    return lambda values: [item for v in values for item in _children(v) if keep(item)]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def evaluate(steps: tuple[Step, ...], obj: Any) -> list[Any]:
    values = [obj]
    for step in steps:
        values = step(values)
        if not values:
            break
    return values
