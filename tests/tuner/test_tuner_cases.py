"""Public bug reports of other tuners, each as its class."""

from __future__ import annotations

import math

import pytest

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.runtime.world import Refusal

COLOURS = [
    {"name": "a", "type": "categorical", "values": list("vwxyz")},
    {"name": "b", "type": "categorical", "values": list("1234")},
    {"name": "c", "type": "categorical", "values": list("pqr")},
]
NUMBERS = [
    {"name": "x", "type": "float", "min": -5, "max": 5},
    {"name": "y", "type": "float", "min": -5, "max": 5},
]


def test_only_plain_finite_decimals_become_metric_values(study):
    """katib#2723: `nan` and an empty annotation end without a value and with a message, and never become the best."""
    texts = ["0.5", "nan", "", "inf", "-inf", "1_000", " 0.5", "0x1p3", "1e400", "٣", "0.4e0"]
    cluster = study(maxTrials=len(texts), parallelism=len(texts))
    cluster.settle()
    for number, text in enumerate(texts):
        cluster.job(f"study-trial-{number}", "Succeeded", annotations={"gryvia.io/metric-loss": text})
    cluster.settle()
    assert cluster.phase == "Succeeded"
    assert [trial.metric_value for trial in cluster.trials] == [0.5] + [None] * 9 + [0.4]
    assert all(trial.phase == "Succeeded" for trial in cluster.trials)
    assert all("not a plain finite decimal" in (trial.message or "") for trial in cluster.trials[1:-1])
    assert cluster.status["bestTrial"]["metricValue"] == 0.4


@pytest.mark.parametrize("algorithm", ["bayesian", "random", "grid", "asha"])
def test_a_small_space_is_exhausted_without_a_repeat(study, algorithm):
    """katib#2571: of 60 points the first 10 trials are 10 distinct ones, 60 trials are all of them, more are not started."""
    for wanted, expected in ((10, 10), (60, 60), (100, 60)):
        cluster = study(
            searchAlgorithm=algorithm,
            parameterSpace=COLOURS,
            maxTrials=wanted,
            parallelism=4,
            ashaConfig={"maxEpochs": 9},
        )
        cluster.run(lambda point: "vwxyz".index(point["a"]) + int(point["b"]) / 10)
        assert cluster.phase == "Succeeded"
        assert len({tuple(trial.parameters.values()) for trial in cluster.trials}) == expected
        assert len(cluster.trials) == expected
        assert ("Search space exhausted" in cluster.message) == (wanted > 60)


def test_a_batch_without_results_is_of_distinct_points(study):
    """katib#1700: eight slots, twenty results, none comes back: eight different points, and not bunched together."""
    cluster = study(searchAlgorithm="bayesian", parameterSpace=NUMBERS, maxTrials=28, parallelism=8)
    cluster.settle()
    for _ in range(20):
        trial = cluster.active[0]
        cluster.succeed(trial.name, float(trial.parameters["x"]) ** 2 + float(trial.parameters["y"]) ** 2)
        cluster.settle()
    batch = [(float(trial.parameters["x"]), float(trial.parameters["y"])) for trial in cluster.active]
    assert len(set(batch)) == 8
    assert max(math.dist(one, other) for one in batch for other in batch) > 1.0


def test_a_nan_on_the_way_stops_nobody(study):
    """ray#24809: the rule does not look at a value that is not finite; the trial with 100 is never stopped."""
    cluster = study(
        searchAlgorithm="asha",
        objective={"metricName": "score", "direction": "maximize"},
        maxTrials=5,
        parallelism=5,
        ashaConfig={"maxEpochs": 4, "reductionFactor": 2, "minResource": 1},
    )
    cluster.settle()
    for number, value in enumerate([0.0, 0.0, 0.0, math.nan, 100.0]):
        point = {"step": 1, "values": {"score": value}}
        cluster.job(f"study-trial-{number}", "Running", {"history": [point], "values": {"score": value}, "step": 1})
        cluster.settle()
    assert cluster.trial(4).phase == "Running"
    assert cluster.trial(3).phase == "Running"
    assert cluster.trial(3).intermediate_metrics is None


@pytest.mark.parametrize("algorithm", ["random", "bayesian", "grid"])
def test_a_restarted_service_goes_on_as_if_nothing_had_been(study, algorithm):
    """ray#12347: stopped at 7 of 20 trials with 3 running; the 3 are adopted, the stream is the same, 20 in total."""

    def objective(point):
        return float(point["lr"]) * int(point["layers"])

    undisturbed = study(searchAlgorithm=algorithm, maxTrials=20, parallelism=3)
    undisturbed.run(objective)
    cluster = study(searchAlgorithm=algorithm, maxTrials=20, parallelism=3)
    cluster.settle()
    while len(cluster.trials) < 7:
        cluster.after(10)
        for trial in cluster.active:
            cluster.succeed(trial.name, objective(trial.parameters))
        cluster.settle()
    assert len(cluster.active) == 3
    cluster.restart()
    cluster.run(objective)
    assert len(cluster.trials) == 20
    assert cluster.trials == undisturbed.trials


@pytest.mark.parametrize("phase", ["Cancelled", "Rejected", "Preempted", "Failed"])
def test_every_end_of_a_job_frees_its_slot(study, phase):
    """katib#2181: no end of a job leaves its trial running."""
    cluster = study(maxTrials=4, parallelism=1)
    cluster.settle()
    cluster.job("study-trial-0", phase, message="because")
    cluster.settle()
    assert cluster.trial(0).phase == "Failed"
    assert "because" in cluster.trial(0).message
    assert [trial.name for trial in cluster.active] == ["study-trial-1"]


def test_a_deleted_job_is_a_failed_trial(study):
    cluster = study(maxTrials=2, parallelism=1)
    cluster.settle()
    del cluster.jobs["study-trial-0"]
    cluster.settle()
    assert cluster.trial(0).phase == "Failed"
    assert "gone" in cluster.trial(0).message
    assert len(cluster.active) == 1


def test_a_refused_job_is_a_failed_trial_and_asked_for_once(study):
    """A trial that the API server will not take cannot loop: the study ends after maxTrials of them, Failed."""
    cluster = study(maxTrials=5, parallelism=2)
    asked = []

    def refuse(resource, manifest):
        asked.append(manifest["metadata"]["name"])
        return Refusal(resource, manifest["metadata"]["name"], "Invalid", "spec.image: bad")

    cluster.refuse = refuse
    cluster.settle()
    assert cluster.phase == "Failed"
    assert [trial.phase for trial in cluster.trials] == ["Failed"] * 5
    assert all("spec.image: bad" in trial.message for trial in cluster.trials)
    assert sorted(asked) == [f"study-trial-{n}" for n in range(5)]
    assert not cluster.jobs


def test_a_template_that_is_always_refused_does_not_use_up_a_thousand_trials(study):
    cluster = study(maxTrials=1000, parallelism=1)
    cluster.refuse = lambda resource, manifest: Refusal(
        resource, manifest["metadata"]["name"], "Invalid", "spec.image: bad"
    )
    cluster.settle()
    assert cluster.phase == "Failed"
    assert len(cluster.trials) == 10
    assert "10 trials in a row could not be created" in cluster.message
    assert "spec.image: bad" in cluster.message


def test_a_foreign_job_of_a_trials_name_fails_that_trial_only(study):
    cluster = study(maxTrials=4, parallelism=2)
    cluster.refuse = lambda resource, manifest: (
        Refusal(AI_JOB.resource, "study-trial-1", "NameCollision", "GryviaAIJob study-trial-1 belongs to somebody else")
        if manifest["metadata"]["name"] == "study-trial-1"
        else None
    )
    cluster.run(lambda point: float(point["lr"]))
    assert cluster.phase == "Succeeded"
    assert [trial.phase for trial in cluster.trials] == ["Succeeded", "Failed", "Succeeded", "Succeeded"]
    assert "belongs to somebody else" in cluster.trial(1).message


def test_what_the_infrastructure_loses_is_run_again_and_does_not_use_up_the_budget(study):
    """Preempted trials come on top of maxTrials, with the same parameters."""
    cluster = study(maxTrials=3, parallelism=1)
    cluster.settle()
    lost = cluster.trial(0).parameters
    cluster.job("study-trial-0", "Preempted")
    cluster.settle()
    assert cluster.trial(1).parameters == lost
    cluster.run(lambda point: 1.0)
    assert [trial.phase for trial in cluster.trials] == ["Failed", "Succeeded", "Succeeded", "Succeeded"]
    assert len({tuple(trial.parameters.items()) for trial in cluster.trials}) == 3


def test_endless_preemption_ends(study):
    """A point is run again three times at most, so a cluster that preempts everything cannot keep a study for ever."""
    cluster = study(maxTrials=2, parallelism=1)
    cluster.settle()
    for _ in range(40):
        if cluster.phase != "Running":
            break
        cluster.job(cluster.active[0].name, "Preempted")
        cluster.settle()
    assert cluster.phase == "Failed"
