"""One measured value as the line that is printed, and whether its goal holds. Nobody bends a goal: a line that misses says so."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Mapping
from typing import Never

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


def run_measure(lines: Iterable[Line]) -> Never:
    """A measure as a program: its lines, then exit code 1 if one does not hold."""
    end_like_interrupted()
    sys.exit(0 if show(lines) else 1)


def end_like_interrupted() -> None:
    """SIGTERM ends this process as Ctrl-C does, and with it what it has started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def show(lines: Iterable[Line]) -> bool:
    """Print each as it comes; whether all hold."""
    holds = True
    for one in lines:
        print(json.dumps(one), flush=True)
        holds &= bool(one["holds"])
    return holds
