"""Metrics out of text: log lines, termination messages and annotations, all pure.

A Reading is what one attempt (one run of one container) has reported so far; it is only ever extended by that attempt's
own lines, so an earlier attempt's numbers cannot get in. Patterns are RE2: a user's regular expression runs in the
service's loop, and RE2 is linear in the line (Python's `re` can be made to hang by one pattern). Only plain finite decimals
count; everything else is remembered as a note, for the job's message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, cast

import re2  # type: ignore[import-untyped]  # the package ships no types

from gryvia_common.kinds.aijob import MetricPoint
from gryvia_common.kube.objects import Json
from gryvia_common.numbers import parse_decimal
from gryvia_jobs.history import add_point

MARKER = "gryvia-report {"
ANNOTATION = "gryvia.io/metric-"
TERMINATION_LIMIT = 4096
LONGEST_LINE = 16 * 1024
MOST_NAMES = 64
MOST_NOTES = 5
STEPS = ("step", "epoch")
INT32_MAX = 2**31 - 1


class Match(Protocol):
    def group(self, index: int) -> str | None: ...


class Pattern(Protocol):
    """The part of a compiled pattern that is used here."""

    groups: int

    def search(self, text: str) -> Match | None: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """`values`: newest value by name. `reports`: how many reports there were, the step of a run that names none."""

    values: Mapping[str, float] | None = None
    history: tuple[MetricPoint, ...] = ()
    notes: tuple[str, ...] = ()
    reports: int = 0
    has_steps: bool = False


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Pattern:
    """Raises ValueError with a sentence when it is no RE2 expression with exactly one group."""
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = cast(Pattern, re2.compile(pattern, options))
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise ValueError(f"is not an RE2 regular expression ({reason})") from error
    if compiled.groups != 1:
        raise ValueError(f"has {compiled.groups} groups instead of one; put ( ) around the number, (?: ) elsewhere")
    return compiled


def read_lines(reading: Reading, lines: Iterable[str], patterns: Mapping[str, str]) -> Reading:
    """The reading after these log lines. Lines above 16 KiB are not looked at."""
    compiled = {name: compile_pattern(pattern) for name, pattern in patterns.items()}
    for line in lines:
        if len(line) > LONGEST_LINE:
            continue
        found = _reported(line)
        if found is None:
            found = {name: text for name, one in compiled.items() if (text := _matched(one, line)) is not None}
        if found:
            reading = _extend(reading, found)
    return reading


def read_object(reading: Reading, found: Mapping[str, Any]) -> Reading:
    """The reading with the newest values of these names, from outside the log; the history stays."""
    values, notes = _numbers(found)
    return _noted(replace(reading, values=_bounded({**(reading.values or {}), **values})), notes)


def termination_metrics(message: str) -> tuple[dict[str, Any], str]:
    """What is meant as a number in a termination message that is a JSON object (other text in it is for others, a
    workflow's outputs for example), and a note when it was cut."""
    text = message.strip()
    if not text.startswith("{"):
        return {}, ""
    try:
        found = json.loads(text)
    except ValueError:
        cut = len(message.encode()) >= TERMINATION_LIMIT
        return {}, f"the termination message was cut at {TERMINATION_LIMIT} bytes and is not read" if cut else ""
    return {name: value for name, value in found.items() if _meant_as_number(value)}, ""


def annotation_metrics(annotations: Mapping[str, str]) -> dict[str, str]:
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


def _matched(pattern: Pattern, line: str) -> str | None:
    match = pattern.search(line)
    return match.group(1) if match else None


def _extend(reading: Reading, found: Mapping[str, Any]) -> Reading:
    values, notes = _numbers(found)
    if not values:
        return _noted(reading, notes)
    known = _bounded({**(reading.values or {}), **values})
    has_steps = reading.has_steps or "step" in values
    last = reading.history[-1] if reading.history else None
    named = whole(values.get("step")) if has_steps else whole(values.get("epoch"))
    fresh = {name: value for name, value in values.items() if name in known}
    if len(fresh) < len(values):
        notes.append(f"more than {MOST_NAMES} metric names were reported; only the first {MOST_NAMES} are kept")
    if not fresh:
        return _noted(reading, notes)
    repeats = last is None or any(name in last.values for name in fresh if name not in STEPS)
    reports = reading.reports + (1 if repeats else 0)
    if named is None:
        named = whole(known.get("step" if has_steps else "epoch"))
    step = reports if named is None else named
    history = add_point(reading.history, step, fresh)
    return _noted(replace(reading, values=known, history=history, reports=reports, has_steps=has_steps), notes)


def _numbers(found: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    values: dict[str, float] = {}
    notes = []
    for name, raw in found.items():
        text = raw if isinstance(raw, str) else json.dumps(raw)
        number = parse_decimal(text)
        if number is not None:
            values[name] = number
        elif name != "throughput" or not isinstance(raw, str):
            shown = text if len(text) <= 40 else text[:40] + "…"
            notes.append(f"metric {name}: {json.dumps(shown, ensure_ascii=False)} is not a plain finite decimal")
    return values, notes


def _bounded(values: dict[str, float]) -> dict[str, float]:
    return dict(list(values.items())[:MOST_NAMES])


def _noted(reading: Reading, notes: Iterable[str]) -> Reading:
    new = [note for note in notes if note not in reading.notes]
    return replace(reading, notes=(*reading.notes, *new)[:MOST_NOTES]) if new else reading
