"""A parameter as a person writes it: refused with what to mend, or a dimension."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_search.dimensions import Choices, Continuous, Integers
from gryvia_search.parameters import Parameter, problems
from gryvia_search.space import Space


def number(text):
    return float(text) if text.lstrip("-").replace(".", "", 1).isdecimal() else None


@pytest.mark.parametrize(
    ("parameter", "dimension"),
    [
        (Parameter("p", "float", min=1e-4, max=1, scale="log"), Continuous("p", 1e-4, 1, True)),
        (Parameter("p", "int", min=1, max=8, step=3), Integers("p", 1, 7, 3)),
        (Parameter("p", "int", values=("32", "8", "16")), Choices("p", ("8", "16", "32"), ordered=True)),
        (Parameter("p", "categorical", values=("b", "a", "b")), Choices("p", ("b", "a"))),
    ],
)
def test_what_a_parameter_means(parameter, dimension):
    assert list(problems([parameter], number)) == []
    assert parameter.dimension() == dimension


def test_every_problem_says_where_it_is_and_what_to_do():
    wrong = [
        Parameter("a b", "float", min=1, max=2),
        Parameter("x", "float", min=3, max=1),
        Parameter("x", "int", values=("1", "one")),
        Parameter("y", "float", min=0, max=1e200, scale="log"),
    ]
    assert list(problems(wrong, number)) == [
        ("[0].name", '"a b" must be made of letters, digits, "_", "." and "-"'),
        ("[1] (x).min", "3 must be less than max (1)"),
        ("[2].name", '"x" is there twice; give each parameter its own name'),
        ("[2] (x).values", '"one" is not a plain int; write a decimal number or use categorical'),
        ("[3] (y)", "min 0 and max 1e+200 must be within 1e+100; search the exponent instead"),
        ("[3] (y).min", "0 must be above 0 for scale log; raise it or use scale linear"),
    ]
    assert list(problems([], number)) == [("", "empty; add at least one parameter")]


PARAMETERS = st.builds(
    Parameter,
    st.just("p"),
    st.sampled_from(["float", "int", "categorical"]),
    min=st.none() | st.floats(-1e6, 1e6),
    max=st.none() | st.floats(-1e6, 1e6),
    scale=st.sampled_from(["linear", "log"]),
    step=st.integers(-1, 5),
    values=st.lists(st.sampled_from(["1", "2.5", "-3", "x"]), max_size=3).map(tuple),
)


@given(PARAMETERS)
def test_what_has_no_problem_has_a_dimension_of_at_least_one_value(parameter):
    if not list(problems([parameter], number)):
        space = Space((parameter.dimension(),))
        assert space.grid_size >= 1
        assert space.encode(space.grid_point(0)) is not None
