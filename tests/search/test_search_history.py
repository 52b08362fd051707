"""A study as the search remembers it: what was lost runs again, nothing else runs twice."""

from __future__ import annotations

from dataclasses import dataclass

from gryvia_search.dimensions import Choices
from gryvia_search.history import RERUNS, History, used
from gryvia_search.search import Search, seed
from gryvia_search.space import Space

SPACE = Space((Choices("a", ("x", "y", "z")),))


@dataclass(frozen=True)
class Run:
    """One trial at a point of SPACE."""

    point: str
    result: float | None = None
    active: bool = False
    lost: bool = False

    @property
    def parameters(self):
        return {"a": self.point}


def following(own, others=(), algorithm="random"):
    """Every point that the history still gives."""
    history, search, found = History(SPACE, own, others), Search(), []
    while (point := history.next(search, algorithm, seed("u", len(found)))) is not None:
        found.append(point[0])
    return found


def test_a_lost_point_comes_first_and_only_while_its_newest_trial_is_lost():
    assert following([Run("y", lost=True), Run("x", 1.0)])[0] == "y"
    assert following([Run("y", lost=True), Run("x", 1.0), Run("y", 2.0)]) == ["z"]


def test_a_point_that_is_lost_too_often_is_given_up_and_counts_as_used():
    lost = [Run("y", lost=True)] * RERUNS
    assert following(lost)[0] == "y"
    assert used(lost) == 0
    assert "y" not in following([*lost, Run("y", lost=True)])
    assert used([*lost, Run("y", lost=True)]) == 1
    assert used([*lost, Run("y", lost=True), Run("x", 1.0), Run("z", active=True)]) == 3


def test_points_of_other_studies_are_not_run_again():
    assert sorted(following([], [Run("x", 1.0)])) == ["y", "z"]


def test_the_grid_goes_on_behind_the_newest():
    assert following([Run("x", 1.0)], algorithm="grid") == ["y", "z"]
    assert following([Run("y", 1.0)], algorithm="grid") == ["z", "x"]
