"""Printing: a table for a person, JSON or YAML for a program, never a mixture.

Tables go to standard output without colour unless it is a terminal; JSON is one document (a list for several objects).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from io import StringIO
from typing import Any

import yaml
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from gryvia_cli.options import Output
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.kind import Column
from gryvia_common.kube.objects import Json

WRAPPED = frozenset({"MESSAGE", "REASON", "VALUE", "NAMESPACES", "ENDED", "NOTE"})
"""Columns of free text: where the terminal is narrow these give way, so that names and numbers stay whole."""

UNBOUNDED = 100_000


def console(*, color: bool) -> Console:
    """Standard output; wide tables are not wrapped when it is no terminal."""
    plain = Console()
    if plain.is_terminal:
        return Console(no_color=not color, highlight=False)
    return Console(no_color=True, highlight=False, width=250)


def print_value(value: Any, output: Output) -> None:
    """JSON or YAML of any JSON value."""
    if output == Output.JSON:
        print(json.dumps(value, indent=2))
    else:
        print(yaml.safe_dump(value, sort_keys=False), end="")


def print_table(out: Console, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold", no_wrap=header not in WRAPPED or not out.is_terminal)
    for row in rows:
        # Texts, so that brackets in a message are no markup.
        table.add_row(*map(Text, row))
    show(out, table)


def say(out: Console, text: str) -> None:
    """A sentence, broken between words on a terminal and not at all in a file."""
    out.print(text, soft_wrap=not out.is_terminal)


def show(out: Console, renderable: RenderableType) -> None:
    """Print it; where nobody looks at columns, without the blanks that fill the last one."""
    if out.is_terminal:
        out.print(renderable)
        return
    # A long message would otherwise take its room from the names: there is no edge to keep to.
    text = StringIO()
    wide = Console(file=text, width=UNBOUNDED, no_color=True, highlight=False)
    wide.print(renderable)
    for line in text.getvalue().splitlines():
        out.print(line.rstrip(), markup=False, soft_wrap=True)


def cell(obj: Json, column: Column, now: datetime) -> str:
    """One printer column of one object; the paths of our columns are plain (`.status.phase`, `.a.b[0].c`)."""
    value: Any = obj
    for part in column.path.removeprefix(".").split("."):
        name, _, index = part.partition("[")
        value = value.get(name) if isinstance(value, dict) else None
        if index:
            position = int(index.rstrip("]"))
            value = value[position] if isinstance(value, list) and position < len(value) else None
    if value is None:
        return ""
    if column.type == "date":
        return age(str(value), now)
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def age(text: str, now: datetime) -> str:
    """`3d4h`, `2h5m`, `4m10s`, `12s`."""
    try:
        seconds = max(0, int((now - parse_timestamp(text)).total_seconds()))
    except ValueError:
        return text
    return duration(seconds)


def duration(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    for large, large_unit, small, small_unit in (
        (days, "d", hours, "h"),
        (hours, "h", minutes, "m"),
        (minutes, "m", rest, "s"),
    ):
        if large:
            return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
    return f"{rest}s"
