"""One machine-readable line per report, on standard output: `gryvia-report {"step": 3, "val_accuracy": 0.91}`.

A line goes out in one write, below the size that a pipe keeps whole, so threads and ranks cannot cut it. It goes to the
process's own standard output even where sys.stdout is redirected (rich, hydra, redirect_stdout), because the log is what
Gryvia reads. What is no finite number is printed by its name ("nan"), so that it is seen and never counted.
"""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

PREFIX = "gryvia-report "
LONGEST = 3500
"""Below PIPE_BUF, so that lines of several processes on one pipe stay whole; longer reports become several lines."""

_lock = threading.Lock()


def report(metrics: Mapping[str, Any] | None = None, /, **values: Any) -> None:
    """Print the metrics. `step` (or `epoch`) says when they were measured.

    Values are numbers, or anything that turns into one: numpy and torch scalars, Decimal, bool. Names that are no Python
    identifiers go into the mapping: report({"val/acc": 0.9}, step=3).
    """
    try:
        text = "".join(f"{PREFIX}{line}\n" for line in _lines({**(metrics or {}), **values}))
        stream = sys.__stdout__ or sys.stdout
        with _lock:
            stream.write(text)
            stream.flush()
    except Exception:  # noqa: BLE001 - a metric that cannot be printed must not end a training run
        return


def _lines(values: Mapping[str, Any]) -> Iterator[str]:
    """The values as JSON objects of bounded length, each with the step."""
    plain = {str(name): _plain(value) for name, value in values.items()}
    steps: dict[str, Any] = {name: plain[name] for name in ("step", "epoch") if name in plain}
    part = dict(steps)
    for name, value in plain.items():
        if name in steps:
            continue
        if len(part) > len(steps) and len(json.dumps({**part, name: value})) > LONGEST:
            yield json.dumps(part)
            part = dict(steps)
        part[name] = value
    if part:
        yield json.dumps(part)


def _plain(value: Any) -> int | float | str:
    """An int or float that JSON can hold, else the value's name."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    if isinstance(value, str):
        return value[:100]
    try:
        number = float(value)
    except Exception:  # noqa: BLE001 - any object may be given, and any of them may raise anything
        return str(type(value).__name__)
    if not math.isfinite(number):
        return "nan" if math.isnan(number) else ("inf" if number > 0 else "-inf")
    return int(number) if number == int(number) and not isinstance(value, float) and abs(number) < 2**53 else number
