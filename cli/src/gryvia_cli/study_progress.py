"""How a study goes, while it goes: one live line with a bar on a terminal, a line a change anywhere else."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column


class StudyProgress:
    """A context manager; `show` may be called as often as one likes."""

    def __init__(self, out: Console, total: int) -> None:
        self._out = out
        self._said = ""
        self._live = Progress(
            BarColumn(bar_width=12),
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            TimeElapsedColumn(),
            console=out,
            transient=True,
            disable=not out.is_terminal,
        )
        self._task = self._live.add_task("the study begins", total=total)

    def __enter__(self) -> StudyProgress:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, done: int, line: str) -> None:
        """`line` says it in words."""
        # The name is in the line above the bar.
        self._live.update(self._task, completed=done, description=line.partition(": ")[2])
        if line != self._said and not self._out.is_terminal:
            self._out.print(line, soft_wrap=True)
        self._said = line
