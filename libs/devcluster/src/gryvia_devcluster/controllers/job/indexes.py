"""Completion indexes as the Job API writes them: `1,3-5,7`.

Three or more neighbours are written as a range, two as a list, exactly as the real controller does, so that text
comparisons with its output hold.
"""

from __future__ import annotations

from collections.abc import Iterable


def parse_indexes(text: str, below: int | None = None) -> set[int]:
    """The indexes in `text`; those at or above `below` (the completions) are left out."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return {index for index in found if below is None or index < below}


def format_indexes(indexes: Iterable[int]) -> str:
    parts: list[str] = []
    for first, last in _runs(sorted(set(indexes))):
        if last == first:
            parts.append(str(first))
        elif last == first + 1:
            parts.append(f"{first},{last}")
        else:
            parts.append(f"{first}-{last}")
    return ",".join(parts)


def _runs(ordered: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for index in ordered:
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs
