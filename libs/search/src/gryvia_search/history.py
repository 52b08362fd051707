"""What a study has tried, and the points that follow: no point twice, but what was lost by no fault of its own runs again.

A point whose newest trial was lost comes before anything new, at most RERUNS times; after that it counts as used up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from gryvia_search.search import Known, Search, seen_by_model
from gryvia_search.space import Point, Space

RERUNS = 3


class Trial(Protocol):
    """One trial: `active` while it may still bring a result, `lost` when it was lost by no fault of its own."""

    @property
    def parameters(self) -> Mapping[str, str]: ...

    @property
    def active(self) -> bool: ...

    @property
    def lost(self) -> bool: ...

    @property
    def result(self) -> float | None: ...


def used(trials: Iterable[Trial]) -> int:
    """How much of a budget of trials is used up: all that were not lost, and the points that were lost too often."""
    count, losses = 0, Counter[frozenset[tuple[str, str]]]()
    for trial in trials:
        if trial.lost:
            losses[frozenset(trial.parameters.items())] += 1
        else:
            count += 1
    return count + sum(times > RERUNS for times in losses.values())


class History:
    """`own`: the study's trials in their order; `others`: those of other studies, which it learns from and does not repeat."""

    def __init__(
        self, space: Space, own: Sequence[Trial], others: Sequence[Trial] = (), *, minimize: bool = True
    ) -> None:
        told = [*others, *own]
        self._space = space
        self._model = list(seen_by_model(list(_known(space, told, 1.0 if minimize else -1.0))))
        self._tried = {point for trial in told if (point := space.point(trial.parameters)) is not None}
        self._last = space.point(own[-1].parameters) if own else None
        self._again = _lost_points(space, own)

    def next(self, search: Search, algorithm: str, seed: int, *, runs: bool = True) -> Point | None:
        """The next point, which is tried from now on; None when the space is exhausted. `runs`: the model may expect a
        result."""
        point = self._again.pop(0) if self._again else None
        if point is None:
            point = search.suggest(algorithm, self._space, seed, self._model, self._tried, self._last)
        if point is not None:
            self._last = point
            self._tried.add(point)
            if runs:
                self._model.append(Known(point, None))
        return point


def _known(space: Space, trials: Iterable[Trial], sign: float) -> Iterator[Known]:
    for trial in trials:
        point = space.point(trial.parameters)
        if point is not None and (trial.active or trial.result is not None):
            yield Known(point, None if trial.result is None else sign * trial.result)


def _lost_points(space: Space, trials: Sequence[Trial]) -> list[Point]:
    """In the order of their loss."""
    losses = Counter(space.point(trial.parameters) for trial in trials if trial.lost)
    newest: dict[Point | None, Trial] = {}
    for trial in trials if losses else ():
        point = space.point(trial.parameters)
        newest.pop(point, None)
        newest[point] = trial
    return [point for point, trial in newest.items() if point is not None and trial.lost and losses[point] <= RERUNS]
