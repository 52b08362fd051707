"""Goal, early stopping and budgets: they stop what runs, name themselves, and end the study only when every job is gone."""

from __future__ import annotations

import pytest

GPU = {"image": "i", "gpus": 2, "distributed": {"enabled": True, "nodes": 3}}


def finish(cluster, number, value, seconds=10):
    cluster.after(seconds)
    cluster.succeed(f"study-trial-{number}", value)
    cluster.settle()


@pytest.mark.parametrize(("direction", "values"), [("minimize", [0.5, 0.1]), ("maximize", [0.1, 0.9])])
def test_a_reached_goal_ends_the_study_and_stops_what_runs(study, direction, values):
    goal = values[1]
    cluster = study(objective={"metricName": "m", "direction": direction, "goal": goal}, maxTrials=20, parallelism=3)
    cluster.settle()
    finish(cluster, 0, values[0])
    assert cluster.phase == "Running"
    finish(cluster, 1, values[1])
    assert cluster.phase == "Succeeded"
    assert f"objective.goal {goal:g} reached" in cluster.message
    assert [trial.phase for trial in cluster.trials] == ["Succeeded", "Succeeded", "Stopped", "Stopped"]
    assert "goal" in cluster.trial(2).message
    assert sorted(cluster.jobs) == ["study-trial-0", "study-trial-1"]
    assert cluster.status["trialsCompleted"] == 4
    assert cluster.happened("trial.stopped") == ["study-trial-2", "study-trial-3"]


def test_early_stopping_counts_results_by_completion_not_by_number(study):
    """Trials 3, 2, 1 complete after the best, which is trial 4: three results without improvement."""
    cluster = study(maxTrials=20, parallelism=5, earlyStoppingRounds=3)
    cluster.settle()
    finish(cluster, 4, 1.0)
    finish(cluster, 3, 2.0)
    finish(cluster, 2, 2.0)
    assert cluster.phase == "Running"
    finish(cluster, 1, 1.0)
    assert cluster.phase == "Succeeded"
    assert "earlyStoppingRounds 3 reached" in cluster.message
    assert cluster.status["bestTrial"]["name"] == "study-trial-4"


def test_an_improvement_starts_the_count_anew(study):
    cluster = study(maxTrials=6, parallelism=1, earlyStoppingRounds=3)
    cluster.settle()
    for number, value in enumerate([5.0, 6.0, 6.0, 4.0, 6.0]):
        finish(cluster, number, value)
        assert cluster.phase == "Running"
    finish(cluster, 5, 7.0)
    assert cluster.phase == "Succeeded"
    assert "earlyStoppingRounds" not in cluster.message


def test_failed_and_silent_trials_are_no_results_for_early_stopping(study):
    cluster = study(maxTrials=8, parallelism=1, earlyStoppingRounds=2)
    cluster.settle()
    finish(cluster, 0, 1.0)
    for number, phase in ((1, "Failed"), (2, "Succeeded"), (3, "Failed")):
        cluster.after(10)
        cluster.job(f"study-trial-{number}", phase)
        cluster.settle()
    assert cluster.phase == "Running"


@pytest.mark.parametrize("allowed", [0, 2])
def test_more_failures_than_allowed_end_the_study(study, allowed):
    cluster = study(maxTrials=20, parallelism=1, maxFailedTrials=allowed)
    cluster.settle()
    for number in range(allowed + 1):
        assert cluster.phase == "Running"
        cluster.job(f"study-trial-{number}", "Failed")
        cluster.settle()
    assert cluster.phase == "Failed"
    assert f"maxFailedTrials {allowed} exceeded: {allowed + 1} trials failed" in cluster.message


def test_lost_trials_are_no_failures(study):
    cluster = study(maxTrials=20, parallelism=1, maxFailedTrials=0)
    cluster.settle()
    cluster.job("study-trial-0", "Preempted")
    cluster.settle()
    assert cluster.phase == "Running"


def test_the_duration_is_looked_at_when_it_is_over_without_any_news(study):
    cluster = study(maxTrials=20, parallelism=2, maxDurationSeconds=100)
    cluster.settle()
    finish(cluster, 0, 1.0, seconds=30)
    plan = cluster.plan()
    assert (plan.again_at - cluster.now).total_seconds() == 70
    cluster.after(69)
    assert not cluster.step()
    cluster.after(1)
    cluster.settle()
    assert cluster.phase == "Succeeded"
    assert "maxDurationSeconds 100 reached" in cluster.message
    assert [trial.phase for trial in cluster.trials] == ["Succeeded", "Stopped", "Stopped"]
    assert all("maxDurationSeconds" in trial.message for trial in cluster.trials[1:])


def test_a_budget_without_any_result_is_a_failed_study(study):
    cluster = study(maxTrials=20, parallelism=2, maxDurationSeconds=100)
    cluster.settle()
    cluster.after(100)
    cluster.settle()
    assert cluster.phase == "Failed"
    assert "maxDurationSeconds 100 reached" in cluster.message


def test_gpu_hours_count_running_gpus_from_the_start_of_the_job(study):
    """2 GPUs on 3 nodes for half an hour are 3 GPU hours; waiting in a queue costs nothing."""
    cluster = study(maxTrials=20, parallelism=1, maxGpuHours=3, jobTemplate=GPU)
    cluster.settle()
    cluster.after(5000)
    cluster.settle()
    assert cluster.phase == "Running"
    cluster.job("study-trial-0", "Running")
    cluster.settle()
    plan = cluster.plan()
    assert (plan.again_at - cluster.now).total_seconds() == pytest.approx(1800, abs=2)
    cluster.after(900)
    cluster.succeed("study-trial-0", 1.0)
    cluster.settle()
    assert cluster.status["gpuHours"] == 1.5
    cluster.job("study-trial-1", "Running")
    cluster.settle()
    cluster.after(900)
    cluster.settle()
    assert cluster.phase == "Succeeded"
    assert "maxGpuHours 3 reached: 3.00 GPU hours used" in cluster.message
    assert cluster.trial(1).phase == "Stopped"


def test_a_study_does_not_end_before_its_last_job_is_gone(study):
    """The delete is asked for again after a crash; the end is written only when no job is left."""
    cluster = study(maxTrials=20, parallelism=2, objective={"metricName": "m", "direction": "maximize", "goal": 1})
    cluster.settle()
    cluster.succeed("study-trial-0", 1.0)
    assert cluster.step()
    assert cluster.phase == "Running"
    assert "stopping the running trials" in cluster.message
    assert "study-trial-1" in cluster.jobs
    cluster.restart()
    cluster.settle()
    assert cluster.phase == "Succeeded"
    assert "study-trial-1" not in cluster.jobs
    assert cluster.trial(1).phase == "Stopped"


def test_a_job_that_is_being_deleted_holds_nothing_up(study):
    cluster = study(maxTrials=20, parallelism=1, maxDurationSeconds=10)
    cluster.settle()
    cluster.after(10)
    cluster.step()
    cluster.jobs["study-trial-0"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:10Z"
    cluster.settle()
    assert cluster.phase == "Failed"
