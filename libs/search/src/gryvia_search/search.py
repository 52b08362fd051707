"""Which point to try next. A pure function of the space, the algorithm, a seed and what is known.

    grid      the product in order
    random    independent draws
    asha      random draws; what makes it asha is in rungs.py
    bayesian  a portfolio: STARTUP random draws, then by lot multivariate TPE with the running trials as constant liars,
              a small step from one of the best, and on all-continuous spaces with enough results CMA-ES (cma.py)

No algorithm repeats a point, and each says None when there is none left. The steps near the best, by lot and among TPE's
candidates, are what plain TPE lacks early on (bench/tuner_regret.py).
All randomness comes from seed(uid, number): a restarted service gives the same stream. The model sees MODEL_BEST and MODEL_NEWEST
results at most, so that a suggestion costs the same at trial 500 and at trial 20,000.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from gryvia_search import cma
from gryvia_search.space import Point, Space
from gryvia_search.tpe import Tpe

STARTUP = 10
LOCAL = 0.25
LOCAL_BEST = 5
CMA_FROM = 50
CMA = 0.35
CANDIDATES_NEAR = 48
MODEL_BEST = 50
MODEL_NEWEST = 200
DRAWS = 200


@dataclass(frozen=True, slots=True)
class Known:
    """A point with its result, smaller is better; None while it is running."""

    point: Point
    value: float | None


def seed(uid: str, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{uid}/{number}".encode()).digest()[:4])


class Search:
    """Holds nothing but bounded caches of pure functions."""

    def __init__(self) -> None:
        self._tpe = Tpe()

    def suggest(
        self,
        algorithm: str,
        space: Space,
        seed: int,
        known: Sequence[Known],
        tried: Set[Point],
        last: Point | None = None,
    ) -> Point | None:
        """The next point, None when the space is exhausted. `known` as `seen_by_model` gives it; `last`: the newest point
        of the study."""
        if algorithm == "grid":
            return _next_on_grid(space, last, tried)
        rng = np.random.default_rng(seed)
        if algorithm == "bayesian":
            within = [one for one in known if space.encode(one.point) is not None]
            point = self._portfolio(space, seed, rng, within, tried)
            if point is not None and point not in tried:
                return point
        return fresh(space, rng, tried)

    def _portfolio(
        self, space: Space, seed: int, rng: np.random.Generator, known: Sequence[Known], tried: Set[Point]
    ) -> Point | None:
        """The suggestion of one of the models, by lot; None while there are too few results for any."""
        results = [one for one in known if one.value is not None]
        if len(results) < STARTUP:
            return None
        lot = rng.random()
        if lot < LOCAL:
            point = _near_the_best(space, rng, results, tried)
            if point is not None:
                return point
        elif lot < LOCAL + CMA and len(results) >= CMA_FROM and cma.fits(space):
            return cma.suggest(space, [(one.point, one.value or 0.0) for one in results], CMA_FROM, seed)
        near = [_step(space, rng, _best(results), chance=0.5) for _ in range(CANDIDATES_NEAR)]
        return self._tpe.suggest(space, [(one.point, one.value) for one in known], tried, seed, near)


def fresh(space: Space, rng: np.random.Generator, tried: Set[Point]) -> Point | None:
    """A random point that was not tried. On a nearly exhausted space one of the untried is picked directly; a continuous
    one counts as exhausted when 200 draws in a row were all known."""
    for _ in range(DRAWS):
        point = space.draw(rng)
        if point not in tried:
            return point
    if not space.finite:
        return None
    left = [index for index in range(space.grid_size) if space.grid_point(index) not in tried]
    return space.grid_point(left[int(rng.integers(len(left)))]) if left else None


def _near_the_best(space: Space, rng: np.random.Generator, results: Sequence[Known], tried: Set[Point]) -> Point | None:
    """An untried point one small step from one of the best, mostly from the best itself."""
    best = _best(results)
    for _ in range(30):
        point = _step(space, rng, best, chance=0.8)
        if point not in tried:
            return point
    return None


def _best(results: Sequence[Known]) -> list[Point]:
    return [one.point for one in sorted(results, key=lambda one: one.value or 0.0)[:LOCAL_BEST]]


def _step(space: Space, rng: np.random.Generator, best: Sequence[Point], chance: float) -> Point:
    """A small step from one of the best: with this chance from the first, else from the second with it, and so on."""
    rank = min(int(rng.geometric(chance)), len(best)) - 1
    return space.neighbour(best[rank], rng)


def _next_on_grid(space: Space, last: Point | None, tried: Set[Point]) -> Point | None:
    """From behind the newest one, so that finding it does not cost a walk over all that were tried."""
    index = None if last is None else space.grid_index(last)
    start = 0 if index is None else index + 1
    for offset in range(space.grid_size):
        point = space.grid_point((start + offset) % space.grid_size)
        if point not in tried:
            return point
    return None


def seen_by_model(known: Sequence[Known]) -> Sequence[Known]:
    """The part of the history that a model is built on, in the same order: all of it, or the best and the newest."""
    if len(known) <= MODEL_BEST + MODEL_NEWEST:
        return known
    old = known[:-MODEL_NEWEST]
    order = sorted((one.value, index) for index, one in enumerate(old) if one.value is not None)
    kept = {index for _, index in order[:MODEL_BEST]}
    chosen = [one for index, one in enumerate(old) if index in kept or one.value is None]
    return [*chosen, *known[-MODEL_NEWEST:]]
