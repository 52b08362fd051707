"""asha: the objective metric in its own direction, at rungs, and stopped trials are stopped for good."""

from __future__ import annotations

import pytest

from gryvia_common.kinds.autotuner import AshaConfig
from gryvia_tuner.validation import rungs_of

NINE = {"maxEpochs": 9, "reductionFactor": 3, "minResource": 1}


def asha(study, direction="maximize", trials=4, **changes):
    return study(
        searchAlgorithm="asha",
        objective={"metricName": "acc", "direction": direction},
        maxTrials=trials,
        parallelism=trials,
        ashaConfig=NINE,
        **changes,
    )


def report(cluster, number, epoch, value):
    history = cluster.jobs[f"study-trial-{number}"].get("status", {}).get("metrics", {}).get("history", [])
    points = [*history, {"step": epoch, "values": {"acc": value, "loss": -value}}]
    cluster.job(f"study-trial-{number}", "Running", {"history": points, "values": {"acc": value}, "step": epoch})
    cluster.settle()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"max_epochs": 9}, (1, 3, 9)),
        ({"max_epochs": 10, "reduction_factor": 2, "min_resource": 3}, (3, 6)),
        ({"max_epochs": 8, "reduction_factor": 1}, (1, 3)),
        ({"max_epochs": 8, "reduction_factor": 0, "min_resource": 0}, (1, 3)),
        ({"max_epochs": 2, "min_resource": 3}, ()),
    ],
)
def test_rungs_grow_by_the_factor_up_to_max_epochs(config, expected):
    assert rungs_of(AshaConfig(**config)).levels == expected


@pytest.mark.parametrize(("direction", "good", "bad"), [("maximize", 0.9, 0.1), ("minimize", 0.1, 0.9)])
def test_the_worse_in_the_objectives_direction_is_stopped(study, direction, good, bad):
    cluster = asha(study, direction)
    cluster.settle()
    report(cluster, 0, 1, bad)
    assert cluster.trial(0).phase == "Running"
    report(cluster, 1, 1, good)
    stopped = cluster.trial(0)
    assert stopped.phase == "Stopped"
    assert stopped.message == f"stopped at rung 1: acc {bad:g} is not among the best 1 of 2 (needs {good:g})"
    assert cluster.trial(1).phase == "Running"
    assert "study-trial-0" not in cluster.jobs
    assert [(metric.step, metric.value) for metric in stopped.intermediate_metrics] == [(1, bad)]
    assert stopped.metric_value is None
    assert cluster.happened("trial.stopped") == ["study-trial-0"]


def test_a_stopped_trial_still_counts_at_its_rung(study):
    """Late trials are judged against those that were stopped: of four the best two may go on."""
    cluster = asha(study)
    cluster.settle()
    for number, value in enumerate([0.9, 0.1, 0.2, 0.8]):
        report(cluster, number, 1, value)
    assert [trial.phase for trial in cluster.trials] == ["Running", "Stopped", "Stopped", "Running"]


def test_the_slot_of_a_stopped_trial_is_used_again(study):
    cluster = study(
        searchAlgorithm="asha",
        objective={"metricName": "acc", "direction": "maximize"},
        maxTrials=3,
        parallelism=2,
        ashaConfig=NINE,
    )
    cluster.settle()
    report(cluster, 0, 1, 0.9)
    report(cluster, 1, 1, 0.1)
    assert [trial.phase for trial in cluster.trials] == ["Running", "Stopped", "Pending"]


def test_the_value_at_a_rung_is_the_first_at_or_after_it(study):
    cluster = asha(study)
    cluster.settle()
    report(cluster, 0, 2, 0.5)
    report(cluster, 0, 4, 0.6)
    report(cluster, 0, 5, 0.7)
    assert [(metric.step, metric.value) for metric in cluster.trial(0).intermediate_metrics] == [(2, 0.5), (4, 0.6)]


def test_a_higher_rung_is_judged_by_itself(study):
    cluster = asha(study)
    cluster.settle()
    report(cluster, 0, 1, 0.9)
    report(cluster, 0, 3, 0.1)
    report(cluster, 1, 1, 0.9)
    report(cluster, 1, 3, 0.5)
    assert [cluster.trial(number).phase for number in (0, 1)] == ["Stopped", "Running"]


def test_an_epoch_among_the_values_counts_before_the_step(study):
    cluster = asha(study)
    cluster.settle()
    point = {"step": 500, "values": {"epoch": 1, "acc": 0.5}}
    cluster.job("study-trial-0", "Running", {"history": [point]})
    cluster.settle()
    assert [(metric.step, metric.value) for metric in cluster.trial(0).intermediate_metrics] == [(1, 0.5)]


def test_loss_falls_back_to_epoch_and_loss_of_the_job(study):
    cluster = study(searchAlgorithm="asha", maxTrials=2, parallelism=2, ashaConfig=NINE)
    cluster.settle()
    cluster.job("study-trial-0", "Running", {"epoch": 1, "loss": 0.5})
    cluster.job("study-trial-1", "Running", {"epoch": 1, "loss": 0.7})
    cluster.settle()
    assert [trial.phase for trial in cluster.trials] == ["Running", "Stopped"]


def test_a_trial_that_ended_between_two_looks_is_at_its_rungs_too(study):
    cluster = asha(study)
    cluster.settle()
    points = [{"step": step, "values": {"acc": 0.9}} for step in range(1, 10)]
    cluster.job("study-trial-0", "Succeeded", {"history": points, "values": {"acc": 0.9}, "step": 9})
    cluster.settle()
    assert [metric.step for metric in cluster.trial(0).intermediate_metrics] == [1, 3, 9]
    report(cluster, 1, 1, 0.1)
    assert cluster.trial(1).phase == "Stopped"


def test_a_study_with_stopped_trials_ends_well_with_its_best(study):
    cluster = asha(study, trials=3)
    cluster.settle()
    report(cluster, 0, 1, 0.9)
    report(cluster, 1, 1, 0.1)
    report(cluster, 2, 1, 0.2)
    cluster.succeed("study-trial-0", 0.95)
    cluster.settle()
    assert cluster.phase == "Succeeded"
    assert (cluster.status["trialsCompleted"], cluster.status["trialsStopped"]) == (3, 2)
    assert cluster.status["bestTrial"]["metricValue"] == 0.95
