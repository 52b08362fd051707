"""The lines of a graph beside its steps, one row a step: each step has a mark, each that others wait for a rail down to them.

    ✓   prepare
    │
    ●   train
    ├─○ evaluate
    ├─○ benchmark
    ○─╯ register

A rail ends at the last step that waits for it, which takes its place. Steps that lead to the same steps share a rail when they stand
right below each other: a hundred steps side by side need one. A mark hangs on a mark above it only where a line is between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gryvia_cli.pipeline import StepView

MARK = "*"
"""Stands for the mark of the row's step, to be replaced."""


@dataclass(frozen=True, slots=True)
class Row:
    """`step` is None for a row of lines only."""

    lines: str
    step: StepView | None


def rail_rows(steps: Sequence[StepView]) -> list[Row]:
    """`steps` are ordered."""
    names = {step.name for step in steps}
    waiting: dict[str, set[str]] = {step.name: set() for step in steps}
    for step in steps:
        for name in step.after:
            if name in names:
                waiting[name].add(step.name)
    drawing = _Drawing()
    for step in steps:
        drawing.add(step, waiting[step.name])
    return drawing.rows


class _Drawing:
    """`columns`: the steps that each rail still leads to, by position; None where there is no rail."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._columns: list[set[str] | None] = []
        self._marked = -1

    def add(self, step: StepView, waiting: set[str]) -> None:
        taps = [number for number, rail in enumerate(self._columns) if rail and step.name in rail]
        for number in taps:
            rail = self._columns[number]
            assert rail is not None
            rail.discard(step.name)
        ending = [number for number in taps if not self._columns[number]]
        place, shared = self._place(taps, ending, waiting)
        if place == self._marked and not shared and (place in ending or waiting or not taps):
            # Below what it waits for a line; below a stranger a gap, so that it is not taken for one that shares the rail.
            self.rows.append(Row(self._between(ending), None))
        self.rows.append(Row(self._row(place, taps), step))
        for number in ending:
            self._columns[number] = None
        if not shared:
            self._set(place, set(waiting) or None)
        self._marked = place

    def _place(self, taps: Sequence[int], ending: Sequence[int], waiting: set[str]) -> tuple[int, bool]:
        """The column of the step's mark, and whether it is on the rail of others that lead where it does."""
        if ending:
            return ending[0], False
        above = self._marked
        if waiting and above not in taps and self._open(above) and self._columns[above] == waiting:
            return above, True
        first = max(taps, default=-1) + 1
        free = (number for number in range(first, len(self._columns)) if self._columns[number] is None)
        return next(free, max(first, len(self._columns))), False

    def _set(self, place: int, rail: set[str] | None) -> None:
        self._columns += [None] * (place + 1 - len(self._columns))
        self._columns[place] = rail
        while self._columns and self._columns[-1] is None:
            self._columns.pop()

    def _between(self, ending: Sequence[int]) -> str:
        """Every rail there is, those that end in the next row too."""
        return " ".join(
            "│" if number in ending or self._open(number) else " " for number in range(len(self._columns))
        ).rstrip()

    def _open(self, number: int) -> bool:
        return 0 <= number < len(self._columns) and bool(self._columns[number])

    def _row(self, place: int, taps: Sequence[int]) -> str:
        ends = [place, *taps]
        low, high = min(ends), max(ends)
        width = max(len(self._columns), high + 1)
        text = ""
        for number in range(width):
            text += self._sign(number, place, taps, low, high)
            text += "─" if low <= number < high else " "
        return text.rstrip()

    def _sign(self, number: int, place: int, taps: Sequence[int], low: int, high: int) -> str:
        if number == place:
            return MARK
        if number in taps:
            goes_on = self._open(number)
            if number == low:
                return "├" if goes_on else "╰"
            if number == high:
                return "┤" if goes_on else "╯"
            return "┼" if goes_on else "┴"
        if self._open(number):
            return "│"
        return "─" if low < number < high else " "


def edges(steps: Sequence[StepView]) -> list[tuple[str, str]]:
    """From each step to those that wait for it."""
    names: Mapping[str, StepView] = {step.name: step for step in steps}
    return [(name, step.name) for step in steps for name in step.after if name in names]
