"""One measured value as the line that is printed, and whether its goal holds. Nobody bends a goal: a line that misses says so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

Line = dict[str, object]


def line(
    bench: str,
    value: float,
    unit: str,
    goal: float | None = None,
    detail: Mapping[str, object] | None = None,
    *,
    digits: int = 2,
    least: bool = False,
) -> Line:
    """`goal` is the most that `value` may be (None: there is none), or with `least` what it has to be above. `detail` is printed
    too: which of several, on which cluster."""
    holds = goal is None or (value > goal if least else value <= goal)
    said = {"bench": bench, "value": round(value, digits), "unit": unit, "goal": goal, "holds": holds}
    return {**said, **(detail or {})}


def show(lines: Iterable[Line]) -> bool:
    """Print each as it comes; whether all hold."""
    holds = True
    for one in lines:
        print(json.dumps(one), flush=True)
        holds &= bool(one["holds"])
    return holds
