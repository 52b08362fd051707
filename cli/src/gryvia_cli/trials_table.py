"""The trials of a study as a table that fits: wide where there is room, closer where there is not.

In order: everything in columns; headers broken at their underscores and numbers cut to four digits; the messages below the table;
the parameters in one column that wraps. What is left out of a column is said elsewhere, never dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gryvia_cli.output import duration
from gryvia_common.kinds.autotuner import Trial
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.trials import trial_number
from gryvia_common.kube.objects import Json

MESSAGE_ROOM = 24
STYLES = {"Failed": "red", "Stopped": "yellow"}


@dataclass(frozen=True, slots=True)
class _Layout:
    """`digits` 0 keeps values as they are."""

    digits: int = 0
    broken: bool = False
    messages: bool = True
    joined: bool = False
    gap: int = 2


LAYOUTS = (
    _Layout(),
    _Layout(digits=4, broken=True),
    _Layout(messages=False),
    _Layout(digits=4, broken=True, messages=False),
    _Layout(digits=4, broken=True, messages=False, gap=1),
)
NARROWEST = _Layout(digits=4, messages=False, joined=True)


def best_name(tuner: Json) -> str:
    """Empty while no trial has a value."""
    return str(((tuner.get("status") or {}).get("bestTrial") or {}).get("name") or "")


def trials_table(tuner: Json, records: Sequence[Trial], width: int) -> RenderableType:
    """One row a trial, in order; `*` marks the best. A value in brackets is a stopped trial's last one."""
    metric = str(((tuner.get("spec") or {}).get("objective") or {}).get("metricName", "metric"))
    best = best_name(tuner)
    layout = next((one for one in LAYOUTS if _needs(one, metric, records) <= width), NARROWEST)
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, layout.gap, 0, 0))
    for header in _headers(layout, metric, records):
        table.add_column(header, no_wrap=header not in ("MESSAGE", "PARAMETERS"), overflow="fold", vertical="bottom")
    for record in records:
        mark = "*" if record.name == best else ""
        style = "bold green" if mark else STYLES.get(record.phase, "")
        table.add_row(mark, *map(Text, _cells(layout, record, _names(records))), style=style)
    if layout.messages:
        return table
    told = [Text(f"trial {trial_number(one.name)}: {one.message}") for one in records if one.message]
    return Group(table, *([Text(), *told] if told else []))


def _needs(layout: _Layout, metric: str, records: Sequence[Trial]) -> int:
    """Columns of the terminal; a message may wrap, but not below a readable width."""
    headers = _headers(layout, metric, records)
    rows = [["", *_cells(layout, record, _names(records))] for record in records]
    total = -layout.gap
    for number, header in enumerate(headers):
        longest = max([len(row[number]) for row in rows] + [len(part) for part in header.split("\n")] or [0])
        total += layout.gap + (min(longest, MESSAGE_ROOM) if header == "MESSAGE" else max(longest, 1))
    return total


def _names(records: Sequence[Trial]) -> list[str]:
    return sorted({name for record in records for name in record.parameters})


def _headers(layout: _Layout, metric: str, records: Sequence[Trial]) -> list[str]:
    shape: Callable[[str], str] = (lambda text: text.replace("_", "_\n")) if layout.broken else str
    names = ["PARAMETERS"] if layout.joined else [shape(name) for name in _names(records)]
    last = ["MESSAGE"] if layout.messages and any(record.message for record in records) else []
    return ["", "TRIAL", *names, shape(metric), "PHASE", "TIME", *last]


def _cells(layout: _Layout, record: Trial, names: Sequence[str]) -> list[str]:
    values = [_short(record.parameters.get(name, ""), layout.digits) for name in names]
    if layout.joined:
        values = [" ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))]
    last = [record.message or ""] if layout.messages else []
    number = trial_number(record.name)
    return ["" if number is None else str(number), *values, _value(record), record.phase, _time(record), *last]


def _value(record: Trial) -> str:
    if record.metric_value is not None:
        return f"{record.metric_value:.6g}"
    points = record.intermediate_metrics or []
    return f"({points[-1].value:.4g})" if points and record.phase == "Stopped" else ""


def _short(text: str, digits: int) -> str:
    """A number cut to so many digits; anything else, and what is short already, as it is."""
    if not digits or len(text) <= digits + 2:
        return text
    try:
        return f"{float(text):.{digits}g}"
    except ValueError:
        return text


def _time(record: Trial) -> str:
    if not record.start_time or not record.completion_time:
        return ""
    return duration(int((parse_timestamp(record.completion_time) - parse_timestamp(record.start_time)).total_seconds()))
