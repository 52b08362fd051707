"""warmStartFrom: finished trials of other tuners inform the search and are not run again."""

from __future__ import annotations

from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.parsing import parse_object

GRID = [{"name": "x", "type": "int", "min": 1, "max": 6}, {"name": "y", "type": "categorical", "values": ["a", "b"]}]


def keep(cluster, *others):
    """The other studies, as the cache shows them."""
    for other in others:
        cluster.others[AUTO_TUNER.resource, "ns", other.name] = other.raw
        for name, config_map in other.config_maps.items():
            cluster.others[CONFIG_MAPS, "ns", name] = config_map


def test_points_that_another_study_has_finished_are_not_run_again(study):
    before = study(name="before", uid="u0", searchAlgorithm="grid", parameterSpace=GRID, maxTrials=5)
    before.run(lambda point: float(point["x"]))
    cluster = study(searchAlgorithm="grid", parameterSpace=GRID, maxTrials=50, warmStartFrom=["before"])
    keep(cluster, before)
    cluster.run(lambda point: float(point["x"]))
    reused = {tuple(trial.parameters.items()) for trial in before.trials}
    own = {tuple(trial.parameters.items()) for trial in cluster.trials}
    assert len(reused) == 5
    assert not own & reused
    assert len(own) == len(cluster.trials) == 12 - 5
    assert cluster.status["warmStartTrials"] == 5
    assert cluster.condition("WarmStarted")["status"] == "True"
    assert cluster.status["trialsLaunched"] == 7


def test_the_search_learns_from_them(study):
    """With 60 results of a neighbour the very first suggestions are near the optimum."""
    space = [{"name": name, "type": "float", "min": -5, "max": 5} for name in "xy"]

    def bowl(point):
        return (float(point["x"]) - 3) ** 2 + (float(point["y"]) + 2) ** 2

    before = study(
        name="before", uid="u0", searchAlgorithm="bayesian", parameterSpace=space, maxTrials=60, parallelism=1
    )
    before.run(bowl)
    changes = {"searchAlgorithm": "bayesian", "parameterSpace": space, "maxTrials": 6, "parallelism": 1}
    warm = study(warmStartFrom=["before"], **changes)
    keep(warm, before)
    warm.run(bowl)
    cold = study(**changes)
    cold.run(bowl)
    assert warm.status["bestTrial"]["metricValue"] < cold.status["bestTrial"]["metricValue"]
    assert sum(bowl(trial.parameters) for trial in warm.trials) < 0.5 * sum(
        bowl(trial.parameters) for trial in cold.trials
    )


def test_the_archive_of_a_large_study_is_reused_too(study):
    before = study(name="before", uid="u0", maxTrials=400, parallelism=20)
    before.run(lambda point: 1.0)
    assert before.config_maps
    cluster = study(maxTrials=2, warmStartFrom=["before"])
    keep(cluster, before)
    cluster.run(lambda point: 1.0)
    assert cluster.status["warmStartTrials"] == 400
    wanted = {
        (ref.resource.plural, ref.name)
        for ref in cluster.controller.refs(parse_object(AUTO_TUNER, cluster.raw), lambda *_: None)
    }
    assert {("configmaps", name) for name in before.config_maps} <= wanted
    assert ("gryviaautotuners", "before") in wanted


def test_a_tuner_that_cannot_serve_is_named_with_the_reason(study):
    other_metric = study(name="metric", uid="u1", objective={"metricName": "acc", "direction": "maximize"}, maxTrials=1)
    other_space = study(name="space", uid="u2", parameterSpace=GRID, maxTrials=1)
    for other in (other_metric, other_space):
        other.run(lambda point: 1.0)
    cluster = study(maxTrials=1, warmStartFrom=["gone", "metric", "space", "study"])
    keep(cluster, other_metric, other_space)
    cluster.run(lambda point: 1.0)
    assert cluster.phase == "Succeeded"
    condition = cluster.condition("WarmStarted")
    assert condition["status"] == "False"
    for word in (
        "gone does not exist",
        "metric has another objective",
        "space has no finished trial",
        "study is this tuner",
    ):
        assert word in condition["message"]
    assert cluster.status["warmStartTrials"] == 0


def test_only_results_inside_the_space_are_reused(study):
    wide = study(
        name="wide", uid="u0", parameterSpace=[{"name": "x", "type": "int", "min": 1, "max": 20}], maxTrials=20
    )
    wide.run(lambda point: float(point["x"]))
    cluster = study(
        parameterSpace=[{"name": "x", "type": "int", "min": 5, "max": 30}], maxTrials=50, warmStartFrom=["wide"]
    )
    keep(cluster, wide)
    cluster.run(lambda point: float(point["x"]))
    assert cluster.status["warmStartTrials"] == 16
    assert sorted(int(trial.parameters["x"]) for trial in cluster.trials) == list(range(21, 31))
