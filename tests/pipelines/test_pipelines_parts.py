"""Graphs and conditions against laws and against the standard library."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_pipelines import dag
from gryvia_pipelines.conditions import compile_condition
from gryvia_pipelines.dag import Node

NAMES = [f"s{n}" for n in range(8)]
GRAPHS = st.fixed_dictionaries({name: st.lists(st.sampled_from(NAMES), unique=True, max_size=3) for name in NAMES})


@given(depends=GRAPHS)
def test_a_cycle_is_found_exactly_when_there_is_one(depends):
    found = dag.cycle(depends)
    try:
        list(TopologicalSorter(depends).static_order())
    except CycleError:
        assert found[0] == found[-1]
        assert all(following in depends[name] for name, following in pairwise(found))
    else:
        assert found == []


@given(depends=GRAPHS)
def test_the_order_has_dependencies_first_and_ancestors_are_all_of_them(depends):
    acyclic = {name: [one for one in found if one < name] for name, found in depends.items()}
    graph = dag.graph([Node(name, tuple(acyclic[name])) for name in reversed(NAMES)])
    assert sorted(graph.order) == NAMES
    for name in NAMES:
        assert all(graph.order.index(one) < graph.order.index(name) for one in acyclic[name])
        reached, waiting = set(), list(acyclic[name])
        while waiting:
            one = waiting.pop()
            reached.add(one)
            waiting += acyclic[one]
        assert graph.ancestors[name] == reached


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("'steps.x.status' == steps.a.status", {"a"}),
        ("steps.a--b.status == 'Failed'", {"a--b"}),
        ("steps['a-b'].status == 'Failed'", {"a-b"}),
        ("steps . a . status == 'Failed'", {"a"}),
        ("steps.0a.outputs.1b == 'x'", {"0a"}),
        ("steps.a.outputs.in == 'x' || steps.b.outputs.true == 'y'", {"a", "b"}),
        ("!(steps.a.status in ['Failed', 'Skipped'])", {"a"}),
        ("steps.a.outputs.size() > 0 && steps.a.outputs.x.size() > 0", {"a"}),
    ],
)
def test_references_are_found_in_every_way_to_write_them(text, steps):
    assert compile_condition(text).steps == steps
