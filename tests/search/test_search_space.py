"""Points are text, stay in their bounds, and are found again."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gryvia_search.dimensions import Choices, Continuous, Integers
from gryvia_search.search import Known, Search, seed
from gryvia_search.space import Space

FLOATS = st.floats(-1e12, 1e12, allow_nan=False, allow_subnormal=False)
NAMES = st.integers(0, 5).map(lambda n: f"p{n}")


@st.composite
def continuous(draw):
    low, high = sorted((draw(FLOATS), draw(FLOATS)))
    assume(low < high)
    log = draw(st.booleans())
    assume(not log or low > 1e-9)
    return Continuous("c", low, high, log)


@st.composite
def integers(draw):
    low, step = draw(st.integers(-1000, 1000)), draw(st.integers(1, 50))
    log = draw(st.booleans()) and low > 0 and step == 1
    return Integers("i", low, low + step * draw(st.integers(0, 200)), step, log)


@st.composite
def choices(draw):
    numbers = draw(st.lists(st.integers(-50, 50), min_size=1, max_size=6, unique=True))
    if draw(st.booleans()):
        return Choices("o", tuple(str(number) for number in sorted(numbers)), ordered=True)
    return Choices("v", tuple(f"v{number}" for number in numbers))


@st.composite
def finite_spaces(draw, most=400):
    dimensions = draw(st.lists(st.one_of(integers(), choices()), min_size=1, max_size=3))
    space = Space(tuple(type(d)(f"p{n}", *_rest(d)) for n, d in enumerate(dimensions)))
    assume(space.grid_size <= most)
    return space


def _rest(dimension):
    if isinstance(dimension, Integers):
        return dimension.low, dimension.high, dimension.step, dimension.log
    return dimension.values, dimension.ordered


@given(continuous(), st.floats(0, 1), st.integers(0, 2**32 - 1))
@example(Continuous("c", 0.1234567, 0.1234568), 0.5, 0)
@example(Continuous("c", 1e-5, 0.1, True), 1.0, 0)
@example(Continuous("c", 0.9999999, 1.0000001), 0.0, 0)
def test_a_float_has_six_digits_inside_its_bounds(dimension, share, number):
    """Never outside by rounding; never more than six digits where six-digit numbers exist in the bounds."""
    middle = dimension.low + share * (dimension.high - dimension.low)
    for text in (dimension.text(middle), dimension.draw(np.random.default_rng(number))):
        assert dimension.low <= float(text) <= dimension.high
        digits = len(Decimal(text).normalize().as_tuple().digits)
        low, high = (float(f"{bound:.5e}") for bound in (dimension.low, dimension.high))
        assert digits <= 6 or not (dimension.low <= low or high <= dimension.high) or high - low < 1e-5 * abs(high)
        assert dimension.encode(text) == float(text)


@given(continuous())
def test_the_grid_of_a_float_has_eleven_points_with_both_ends(dimension):
    grid = [dimension.level(index) for index in range(dimension.levels)]
    assert len(grid) == len(set(grid)) <= 11
    numbers = [float(text) for text in grid]
    assert numbers == sorted(numbers)
    span = dimension.high - dimension.low
    assume(span > max(1e-3 * max(abs(dimension.low), abs(dimension.high)), 1e-200))
    assert len(grid) == 11
    assert math.isclose(numbers[0], dimension.low, rel_tol=1e-4, abs_tol=1e-5 * span)
    assert math.isclose(numbers[-1], dimension.high, rel_tol=1e-4, abs_tol=1e-5 * span)


def test_a_log_grid_is_spaced_by_ratio():
    dimension = Continuous("lr", 1e-5, 1.0, log=True)
    numbers = [float(dimension.level(index)) for index in range(11)]
    ratios = [after / before for before, after in itertools.pairwise(numbers)]
    assert all(math.isclose(ratio, ratios[0], rel_tol=1e-4) for ratio in ratios)


@given(finite_spaces())
def test_grid_index_and_grid_point_are_inverse(space):
    points = [space.grid_point(index) for index in range(space.grid_size)]
    assert len(set(points)) == space.grid_size
    assert [space.grid_index(point) for point in points] == list(range(space.grid_size))


@given(finite_spaces(), st.integers(0, 2**32 - 1))
def test_every_drawn_point_is_on_the_grid_of_a_finite_space(space, number):
    point = space.draw(np.random.default_rng(number))
    assert space.grid_index(point) is not None


@given(st.one_of(continuous(), integers(), choices()), st.integers(0, 2**32 - 1))
def test_a_point_survives_the_way_through_optuna(dimension, number):
    space = Space((dimension,))
    point = space.draw(np.random.default_rng(number))
    encoded = space.encode(point)
    assert encoded is not None
    distribution = space.distributions[dimension.name]
    inner = {dimension.name: distribution.to_external_repr(distribution.to_internal_repr(encoded[dimension.name]))}
    assert space.decode(inner) == point


@settings(max_examples=25, deadline=None)
@given(finite_spaces(most=60), st.sampled_from(["grid", "random", "bayesian"]), st.text(max_size=5))
def test_any_small_space_is_visited_once_each(space, algorithm, uid):
    search, tried, known, last = Search(), set(), [], None
    for number in range(space.grid_size):
        last = search.suggest(algorithm, space, seed(uid, number), known, tried, last)
        assert last is not None
        assert last not in tried
        tried.add(last)
        known.append(Known(last, float(len(last[0])) if number % 3 else None))
    assert search.suggest(algorithm, space, seed(uid, -1), known, tried, last) is None


def test_a_continuous_space_of_three_numbers_ends_too():
    space = Space((Continuous("x", 1.0, 1.00002),))
    search, tried = Search(), set()
    while (point := search.suggest("random", space, seed("u", len(tried)), [], tried)) is not None:
        assert point not in tried
        tried.add(point)
    assert tried == {("1",), ("1.00001",), ("1.00002",)}


def test_the_grid_is_the_product_in_order():
    space = Space((Choices("a", ("x", "y")), Integers("b", 1, 5, 2)))
    points = [space.grid_point(index) for index in range(space.grid_size)]
    assert points == [("x", "1"), ("x", "3"), ("x", "5"), ("y", "1"), ("y", "3"), ("y", "5")]
