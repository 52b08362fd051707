"""Early stopping by rungs (ASHA): which running trials are stopped at which rung.

Rungs are first * factor^k up to last. A trial's value at a rung is what it reported first at or after it; a trial is judged at
the highest rung it has reached, against everyone who has a value there, dead or alive (Li et al. 2020, "A System for Massively
Parallel Hyperparameter Tuning", without promotion queues: trials run on unless they are stopped). It is stopped when it is
outside the best ceil(n / factor) and n is at least 2; ties stay.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

Points = tuple[tuple[int, float], ...]
"""(resource, value) by resource; values are finite."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a trial is stopped: its value at the rung is not among the best `keep` of `peers`, which need `needed`."""

    rung: int
    value: float
    keep: int
    peers: int
    needed: float

    def said(self, metric: str) -> str:
        return (
            f"stopped at rung {self.rung}: {metric} {self.value:g} is not among the best {self.keep} of {self.peers}"
            f" (needs {self.needed:g})"
        )


@dataclass(frozen=True)
class Rungs:
    """`first` at least 1, `factor` at least 2. Not slotted: the levels are cached."""

    first: int
    factor: int
    last: int

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Empty when not even the first is within `last`."""
        levels = []
        level = self.first
        while level <= self.last:
            levels.append(level)
            level *= self.factor
        return tuple(levels)

    def reached(self, kept: Points, reported: Iterable[tuple[int, float]]) -> Points:
        """What is kept of a trial: one point a rung; what was kept before stays, whatever is reported later."""
        points = sorted(reported)
        found = dict(kept)
        for level in self.levels:
            if not any(resource >= level for resource in found):
                first = next((point for point in points if point[0] >= level), None)
                if first is None:
                    break
                found[first[0]] = first[1]
        return tuple(sorted(found.items()))

    def judged(self, trials: Mapping[int, Points], running: Collection[int], *, minimize: bool) -> dict[int, Verdict]:
        """Which of the running trials to stop. `trials`: what is kept of every trial, by number."""
        sign = 1.0 if minimize else -1.0
        at = {
            level: {number: value for number, kept in trials.items() if (value := _value_at(kept, level)) is not None}
            for level in self.levels
        }
        peers = {level: sorted(sign * value for value in values.values()) for level, values in at.items()}
        stops: dict[int, Verdict] = {}
        for number in running:
            level = max((level for level, values in at.items() if number in values), default=None)
            if level is None or len(peers[level]) < 2:
                continue
            keep = math.ceil(len(peers[level]) / self.factor)
            value, needed = at[level][number], sign * peers[level][keep - 1]
            if sign * value > sign * needed:
                stops[number] = Verdict(level, value, keep, len(peers[level]), needed)
        return stops


def _value_at(kept: Points, level: int) -> float | None:
    return next((value for resource, value in kept if resource >= level), None)
