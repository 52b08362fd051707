"""The search gets better with what it knows."""

from __future__ import annotations

import numpy as np
import pytest

from gryvia_search import cma
from gryvia_search.dimensions import Choices, Continuous, Integers
from gryvia_search.search import Known, Search, seed, seen_by_model
from gryvia_search.space import Space

MIXED = Space(
    (
        Continuous("lr", 1e-5, 1.0, log=True),
        Integers("layers", 1, 16),
        Choices("batch", ("16", "32", "64", "128"), ordered=True),
        Choices("act", ("relu", "tanh", "gelu")),
    )
)
BOX = Space(tuple(Continuous(f"x{n}", -5.0, 5.0) for n in range(4)))


def mixed(point):
    lr, layers, batch, act = point
    return abs(np.log10(float(lr)) + 3) + abs(int(layers) - 11) / 4 + abs(int(batch) - 64) / 64 + (act != "gelu")


def ellipsoid(point):
    return sum(100.0 ** (n / 3) * (float(text) - 1.2) ** 2 for n, text in enumerate(point))


def best_of(algorithm, space, objective, trials, uid):
    search, known, tried = Search(), [], set()
    for number in range(trials):
        point = search.suggest(algorithm, space, seed(uid, number), seen_by_model(known), tried)
        assert point is not None
        assert point not in tried
        tried.add(point)
        known.append(Known(point, float(objective(point))))
    return min(one.value for one in known)


@pytest.mark.parametrize(("space", "objective"), [(MIXED, mixed), (BOX, ellipsoid)])
def test_bayesian_beats_random(space, objective):
    """Over four seeds of 80 trials: less than half of what random search leaves."""
    bayesian, random = (
        np.mean([best_of(algorithm, space, objective, 80, f"u{n}") for n in range(4)])
        for algorithm in ("bayesian", "random")
    )
    assert bayesian < 0.5 * random


def test_cma_es_closes_in_on_the_optimum_from_results_alone():
    """Each point is asked of a new evolution that only knows the results: it still converges."""
    rng = np.random.default_rng(5)
    results = [(point, ellipsoid(point)) for point in (BOX.draw(rng) for _ in range(20))]
    for number in range(240):
        point = cma.suggest(BOX, results, 20, seed("cma", number))
        results.append((point, ellipsoid(point)))
    assert min(value for _, value in results[:20]) > 1.0
    assert min(value for _, value in results) < 0.05


def test_cma_es_is_for_spaces_of_two_or_more_floats():
    assert cma.fits(BOX)
    assert not cma.fits(MIXED)
    assert not cma.fits(Space(BOX.dimensions[:1]))


def test_the_model_sees_the_best_and_the_newest_and_what_runs():
    known = [Known((str(n),), float((n * 7919) % 2000)) for n in range(2000)]
    known[3] = Known(("3",), None)
    seen = seen_by_model(known)
    assert len(seen) <= 300
    assert known[3] in seen
    assert seen[-200:] == known[-200:]
    assert min(one.value for one in known if one.value is not None) == min(
        one.value for one in seen if one.value is not None
    )
    assert [int(one.point[0]) for one in seen] == sorted(int(one.point[0]) for one in seen)


def test_what_the_model_cannot_read_does_no_harm():
    """Points of an edited spec, values far outside, one value for all: still a suggestion inside the space."""
    known = [Known(("0.1", "99", "16", "relu"), 1.0), Known(("x", "y", "z", "w"), -1e300)]
    rng = np.random.default_rng(1)
    known += [Known(MIXED.draw(rng), 1e300) for _ in range(30)]
    point = Search().suggest("bayesian", MIXED, seed("u", 1), known, {one.point for one in known})
    assert point is not None
    assert MIXED.encode(point) is not None


def test_equal_seeds_give_equal_suggestions_whatever_was_asked_before():
    rng = np.random.default_rng(2)
    known = [Known(point, float(mixed(point))) for point in (MIXED.draw(rng) for _ in range(40))]
    tried = {one.point for one in known}
    used, new = Search(), Search()
    for number in range(12):
        used.suggest("bayesian", MIXED, seed("other", number), known[: 20 + number], tried)
    for number in range(12):
        assert used.suggest("bayesian", MIXED, seed("u", number), known, tried) == new.suggest(
            "bayesian", MIXED, seed("u", number), known, tried
        )
