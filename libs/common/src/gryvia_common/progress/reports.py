"""Numbers out of text: log lines, termination messages and annotations, all pure.

A Reading is what one attempt (one run of one container) has reported so far; it is only ever extended by that attempt's
own lines, so an earlier attempt's numbers cannot get in. Only plain finite decimals count; everything else is remembered
as a note, for a message. Free text is allowed in one place, the contract's `throughput`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from gryvia_common.kinds.aijob import MetricPoint
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import GROUP
from gryvia_common.numbers import parse_decimal
from gryvia_common.progress.history import add_point, thin
from gryvia_common.progress.patterns import compile_pattern, matched

MARKER = "gryvia-report {"
ANNOTATION = f"{GROUP}/metric-"
FREE_TEXT = "throughput"
LONGEST_LINE = 16 * 1024
MOST_NAMES = 64
MOST_NOTES = 5
STEPS = ("step", "epoch")
INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Reading:
    """`values`: newest value by name. `reports`: how many reports there were, the step of a run that names none."""

    values: Mapping[str, float] = field(default_factory=dict)
    history: tuple[MetricPoint, ...] = ()
    notes: tuple[str, ...] = ()
    reports: int = 0
    has_steps: bool = False


def read_lines(reading: Reading, lines: Iterable[str], patterns: Mapping[str, str]) -> Reading:
    """The reading after these log lines: what gryvia.report printed, else what the patterns (name to regular expression)
    find. Lines above 16 KiB are not looked at."""
    compiled = {name: compile_pattern(pattern) for name, pattern in patterns.items()}
    for line in lines:
        if len(line) > LONGEST_LINE:
            continue
        found = _reported(line)
        if found is None:
            found = matched(compiled, line)
        if found:
            reading = _extended(reading, found)
    return reading


def read_values(reading: Reading, found: Mapping[str, Any]) -> Reading:
    """The reading with the newest values of these names, from outside the log; the history stays."""
    values, notes = _numbers(found)
    return _noted(replace(reading, values=_bounded({**reading.values, **values})), notes)


def continued(earlier: Reading, later: Reading) -> Reading:
    """A reading of the same attempt that begins in the middle (the reader was restarted), with what was known before."""
    first = later.history[0].step if later.history else None
    kept = [point for point in earlier.history if first is None or (point.step is not None and point.step < first)]
    return replace(later, values={**earlier.values, **later.values}, history=thin([*kept, *later.history]))


def meant_as_numbers(found: Mapping[str, Any]) -> dict[str, Any]:
    """What of a JSON object is a number or was meant as one (`"nan"`); other text in it is for others, a workflow's outputs
    for example."""
    return {name: value for name, value in found.items() if _meant_as_number(value)}


def annotated(annotations: Mapping[str, str]) -> dict[str, str]:
    """The values of the annotations `gryvia.io/metric-<name>`, by name."""
    return {
        key.removeprefix(ANNOTATION): value for key, value in sorted(annotations.items()) if key.startswith(ANNOTATION)
    }


def whole(value: float | None) -> int | None:
    """The number as an int32 field takes it, None when it is none or not whole."""
    return int(value) if value is not None and value == int(value) and abs(value) <= INT32_MAX else None


def _reported(line: str) -> Json | None:
    """What gryvia.report printed on this line, behind whatever a progress bar left there before it."""
    start = line.rfind(MARKER)
    if start < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(line, start + len(MARKER) - 1)
    except ValueError:
        return None
    return cast(Json, found)


def _meant_as_number(value: object) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


def _extended(reading: Reading, found: Mapping[str, Any]) -> Reading:
    values, notes = _numbers(found)
    known = _bounded({**reading.values, **values})
    fresh = {name: value for name, value in values.items() if name in known}
    if len(fresh) < len(values):
        notes.append(f"more than {MOST_NAMES} metric names were reported; only the first {MOST_NAMES} are kept")
    if not fresh:
        return _noted(reading, notes)
    has_steps = reading.has_steps or "step" in values
    last = reading.history[-1] if reading.history else None
    repeats = last is None or any(name in last.values for name in fresh if name not in STEPS)
    reports = reading.reports + repeats
    named = whole({**known, **values}.get("step" if has_steps else "epoch"))
    history = add_point(reading.history, reports if named is None else named, fresh)
    return _noted(replace(reading, values=known, history=history, reports=reports, has_steps=has_steps), notes)


def _numbers(found: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    values: dict[str, float] = {}
    notes = []
    for name, raw in found.items():
        text = raw if isinstance(raw, str) else json.dumps(raw)
        number = parse_decimal(text)
        if number is not None:
            values[name] = number
        elif name != FREE_TEXT or not isinstance(raw, str):
            shown = text if len(text) <= 40 else text[:40] + "…"
            notes.append(f"metric {name}: {json.dumps(shown, ensure_ascii=False)} is not a plain finite decimal")
    return values, notes


def _bounded(values: dict[str, float]) -> dict[str, float]:
    return dict(list(values.items())[:MOST_NAMES])


def _noted(reading: Reading, notes: Iterable[str]) -> Reading:
    new = [note for note in notes if note not in reading.notes]
    return replace(reading, notes=(*reading.notes, *new)[:MOST_NOTES]) if new else reading
