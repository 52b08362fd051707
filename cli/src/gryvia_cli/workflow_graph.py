"""A workflow's graph drawn for a terminal, for Graphviz and for Mermaid, with the state of each step.

In the terminal one line a step: lines of the graph where they leave room for the names, else the steps in layers; what a step
waits for stands at the end of its line in words, too. Readable without colour, at 80 columns, with a hundred steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

from rich.text import Text

from gryvia_cli.pipeline import StepView, depths, ordered
from gryvia_cli.rails import MARK, Row, edges, rail_rows

MARKS = {"Succeeded": "✓", "Failed": "✗", "Running": "●", "Skipped": "–"}
STYLES = {"Succeeded": "green", "Failed": "bold red", "Running": "bold cyan", "Skipped": "dim"}
FILLS = {"Succeeded": "#c8e6c9", "Failed": "#ffcdd2", "Running": "#b3e5fc", "Skipped": "#eeeeee"}
PENDING = "○"
WIDEST_RAILS = 36
STATE_ROOM = 26
"""Columns for phase and time beside a name."""


def drawn(steps: Sequence[StepView], now: datetime, width: int) -> list[Text]:
    """The lines; none is longer than `width`."""
    main, stuck = ordered(step for step in steps if not step.last)
    last, stuck_last = ordered(step for step in steps if step.last)
    lines = list(_section(main, now, width))
    if last:
        lines += [Text(), Text("in the end, whatever happened", style="dim"), *_section(last, now, width)]
    if lost := [*stuck, *stuck_last]:
        lines += [Text(), Text("in a circle, or behind one: these can never start", style="bold red")]
        lines += [_line(Row(MARK, step), 1, max(len(one.name) for one in lost), 0, now) for step in lost]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _section(steps: Sequence[StepView], now: datetime, width: int) -> Iterator[Text]:
    if not steps:
        return
    rows = rail_rows(steps)
    room = max(len(row.lines) for row in rows)
    name = max(len(step.name) for step in steps)
    if room > min(WIDEST_RAILS, max(8, width - name - STATE_ROOM)):
        rows = _layered(steps)
        room = max(len(row.lines) for row in rows)
    facts = max(len(_facts(step, now)) for step in steps)
    for row in rows:
        yield _line(row, room, name, facts, now)


def _layered(steps: Sequence[StepView]) -> list[Row]:
    """Numbered layers: a step is one below the lowest it waits for."""
    layer = depths(steps)
    found: list[Row] = []
    for depth, members in groupby(sorted(steps, key=lambda step: layer[step.name]), lambda step: layer[step.name]):
        for number, step in enumerate(members):
            found.append(Row(f"{depth + 1 if number == 0 else '':>3} {MARK}", step))
    return found


def _line(row: Row, room: int, name: int, facts: int, now: datetime) -> Text:
    """`room`, `name`, `facts`: the widths of the columns."""
    if row.step is None:
        return Text(row.lines, style="dim")
    step = row.step
    before, _, behind = row.lines.partition(MARK)
    line = Text(before, style="dim", end="")
    style = STYLES.get(step.phase, "")
    drawn = Text.assemble(
        line, (MARKS.get(step.phase, PENDING), style), (behind.ljust(room - len(before) - 1), "dim"), f" {step.name}"
    )
    words = _facts(step, now)
    names = [f"{one} (no such step)" if one in step.unknown else one for one in step.after]
    after = f"  ← {', '.join(names)}" if names else ""
    drawn.append(" " * (name - len(step.name)) + "  ")
    drawn.append(words.ljust(facts) if after else words, style=style)
    drawn.append(after, style="dim")
    drawn.rstrip()
    return drawn


def _facts(step: StepView, now: datetime) -> str:
    found = [step.phase or step.type, step.time(now), step.items_done and f"{step.items_done} items"]
    return "  ".join(one for one in found if one)


def mermaid(steps: Sequence[StepView]) -> str:
    """A flowchart, as GitHub and most wikis show it."""
    number = {step.name: f"s{position}" for position, step in enumerate(steps)}
    lines = ["flowchart TD"]
    for step in steps:
        label = json.dumps(_label(step, "<br/>"), ensure_ascii=False)
        lines.append(f"    {number[step.name]}{'([' if step.last else '['}{label}{'])' if step.last else ']'}")
    lines += [f"    {number[start]} --> {number[end]}" for start, end in edges(steps)]
    for phase, fill in FILLS.items():
        if members := ",".join(number[step.name] for step in steps if step.phase == phase):
            lines += [f"    classDef {phase} fill:{fill},color:#000", f"    class {members} {phase}"]
    return "\n".join(lines) + "\n"


def dot(steps: Sequence[StepView], name: str) -> str:
    """For Graphviz: `gryvia workflows graph NAME -o dot | dot -Tsvg`."""
    lines = [f"digraph {_quoted(name)} {{", '  node [shape=box, style="rounded,filled", fillcolor=white];']
    for step in steps:
        fill = FILLS.get(step.phase)
        more = f", fillcolor={_quoted(fill)}" if fill else ""
        lines.append(f"  {_quoted(step.name)} [label={_quoted(_label(step, chr(10)))}{more}];")
    lines += [f"  {_quoted(start)} -> {_quoted(end)};" for start, end in edges(steps)]
    return "\n".join([*lines, "}"]) + "\n"


def _label(step: StepView, newline: str) -> str:
    return newline.join(part for part in (step.name, step.phase or step.type, step.items_done) if part)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
