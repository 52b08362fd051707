"""CMA-ES as a pure function of the results: the evolution is replayed each time, not kept.

The distribution starts at the best of the first results; what came after them, whoever suggested it, is told to it in
generations in the order of the trials; then one point is asked. That costs 0.1 ms a generation, and there is no state that a
crash could lose or that a trial finishing late could contradict. Coordinates are positions on each parameter's scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import cmaes  # type: ignore[import-untyped]  # the package ships no types
import numpy as np

from gryvia_search.dimensions import Continuous
from gryvia_search.space import Point, Space

SIGMA = 0.15
MARGIN = 1e-6


def fits(space: Space) -> bool:
    """Whether it can search this space: at least two parameters, all continuous."""
    return len(space.dimensions) > 1 and all(isinstance(one, Continuous) for one in space.dimensions)


def suggest(space: Space, results: Sequence[tuple[Point, float]], start: int, seed: int) -> Point:
    """`results` in the order of the trials, smaller is better, at least `start` of them."""
    dimensions = [one for one in space.dimensions if isinstance(one, Continuous)]
    positions = [
        (np.array([one.position(text) for one, text in zip(dimensions, point, strict=True)]), value)
        for point, value in results
    ]
    best, _ = min(positions[:start], key=lambda position: position[1])
    evolution = cmaes.CMA(
        mean=np.clip(best, MARGIN, 1 - MARGIN),
        sigma=SIGMA,
        bounds=np.array([[0.0, 1.0]] * len(dimensions)),
        seed=seed,
    )
    size = evolution.population_size
    for first in range(start, len(positions) - size + 1, size):
        evolution.tell(positions[first : first + size])
    asked = evolution.ask()
    return tuple(one.at(float(position)) for one, position in zip(dimensions, asked, strict=True))
