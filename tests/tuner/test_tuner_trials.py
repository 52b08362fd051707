"""A trial's job, its metric, and what the status says of it."""

from __future__ import annotations

import json


def test_a_trial_is_an_owned_job_of_the_template_with_the_trials_variables(study):
    cluster = study(maxTrials=1)
    cluster.settle()
    job = cluster.jobs["study-trial-0"]
    trial = cluster.trial(0)
    meta = job["metadata"]
    assert meta["namespace"] == "ns"
    assert meta["labels"]["gryvia.io/tuner"] == "study"
    assert meta["labels"]["gryvia.io/component"] == "trial"
    assert meta["ownerReferences"][0]["uid"] == "uid-1"
    assert json.loads(meta["annotations"]["gryvia.io/trial-parameters"]) == trial.parameters
    env = [(variable["name"], variable["value"]) for variable in job["spec"]["env"]]
    assert env == [
        ("A", "1"),
        ("HP_act", trial.parameters["act"]),
        ("HP_layers", trial.parameters["layers"]),
        ("HP_lr", trial.parameters["lr"]),
        ("TRIAL_NAME", "study-trial-0"),
        ("TUNER_NAME", "study"),
    ]
    assert job["spec"]["image"] == "python:3.11"
    assert (trial.name, trial.job_name, trial.phase) == ("study-trial-0", "study-trial-0", "Pending")


def test_a_template_without_type_and_gpus_is_a_cpu_training(study):
    cluster = study(maxTrials=1, jobTemplate={"image": "i"})
    cluster.settle()
    spec = cluster.jobs["study-trial-0"]["spec"]
    assert (spec["type"], spec["gpus"]) == ("training", 0)


def test_a_variable_of_the_template_that_the_tuner_sets_is_there_once(study):
    template = {"image": "i", "env": [{"name": "TUNER_NAME", "value": "mine"}, {"name": "B", "value": "2"}]}
    cluster = study(maxTrials=1, jobTemplate=template)
    cluster.settle()
    env = [(one["name"], one["value"]) for one in cluster.jobs["study-trial-0"]["spec"]["env"]]
    assert env.count(("TUNER_NAME", "study")) == 1
    assert ("TUNER_NAME", "mine") not in env
    assert env[0] == ("B", "2")


def test_the_annotation_comes_before_the_metrics_of_the_job(study):
    cluster = study(objective={"metricName": "val/acc top", "direction": "maximize"}, maxTrials=3, parallelism=3)
    cluster.settle()
    values = {"values": {"val/acc top": 0.5}, "loss": 9.0}
    cluster.job("study-trial-0", "Succeeded", values, {"gryvia.io/metric-val_acc_top": "0.75"})
    cluster.job("study-trial-1", "Succeeded", values)
    cluster.job("study-trial-2", "Succeeded", {"loss": 9.0})
    cluster.settle()
    assert [trial.metric_value for trial in cluster.trials] == [0.75, 0.5, None]
    assert "did not report the metric val/acc top" in cluster.trial(2).message


def test_loss_falls_back_to_the_loss_of_the_job(study):
    cluster = study(maxTrials=1)
    cluster.settle()
    cluster.job("study-trial-0", "Succeeded", {"loss": 0.25})
    cluster.settle()
    assert cluster.trial(0).metric_value == 0.25


def test_a_late_metric_still_counts_while_the_study_runs(study):
    cluster = study(maxTrials=2, parallelism=2)
    cluster.settle()
    cluster.job("study-trial-0", "Succeeded")
    cluster.settle()
    assert cluster.trial(0).metric_value is None
    cluster.job("study-trial-0", "Succeeded", annotations={"gryvia.io/metric-loss": "0.5"})
    cluster.settle()
    assert (cluster.trial(0).metric_value, cluster.trial(0).message) == (0.5, None)
    assert cluster.happened("trial.completed") == ["study-trial-0"]


def test_phases_times_and_counts_follow_the_jobs(study):
    cluster = study(maxTrials=4, parallelism=4)
    cluster.settle()
    cluster.job("study-trial-0", "Running", startTime="2026-01-01T00:00:05Z")
    cluster.job("study-trial-1", "Failed", message="BackoffLimitExceeded", completionTime="2026-01-01T00:00:07Z")
    cluster.job("study-trial-2", "Queued")
    cluster.succeed("study-trial-3", 0.5)
    cluster.settle()
    assert [trial.phase for trial in cluster.trials] == ["Running", "Failed", "Pending", "Succeeded"]
    assert cluster.trial(0).start_time == "2026-01-01T00:00:05Z"
    assert cluster.trial(1).completion_time == "2026-01-01T00:00:07Z"
    assert "BackoffLimitExceeded" in cluster.trial(1).message
    counts = {
        key: cluster.status[key] for key in ("trialsCompleted", "trialsRunning", "trialsFailed", "trialsLaunched")
    }
    assert counts == {"trialsCompleted": 1, "trialsRunning": 2, "trialsFailed": 1, "trialsLaunched": 4}
    assert cluster.condition("TrialsRunning")["reason"] == "TrialsActive"
    assert cluster.condition("BestTrialFound")["status"] == "True"


def test_the_best_is_the_best_in_the_objectives_direction_and_the_first_of_equals(study):
    for direction, best in (("minimize", "study-trial-1"), ("maximize", "study-trial-0")):
        cluster = study(objective={"metricName": "m", "direction": direction}, maxTrials=4, parallelism=4)
        cluster.settle()
        for number, value in enumerate([3.0, -1.0, 3.0, -1.0]):
            cluster.succeed(f"study-trial-{number}", value)
        cluster.settle()
        assert cluster.status["bestTrial"]["name"] == best
        assert cluster.phase == "Succeeded"
        assert cluster.condition("TrialsRunning") | {"status": "False", "reason": "Done"} == cluster.condition(
            "TrialsRunning"
        )


def test_a_study_of_failures_is_failed_and_one_without_metrics_says_so(study):
    cluster = study(maxTrials=2, parallelism=2)
    cluster.settle()
    for name in list(cluster.jobs):
        cluster.job(name, "Failed", message="exit code 1")
    cluster.settle()
    assert cluster.phase == "Failed"
    silent = study(maxTrials=2, parallelism=2)
    silent.settle()
    for name in list(silent.jobs):
        silent.job(name, "Succeeded")
    silent.settle()
    assert silent.phase == "Succeeded"
    assert "no trial reported the metric loss" in silent.message


def test_events_name_each_transition_once(study):
    cluster = study(maxTrials=3, parallelism=1)
    cluster.settle()
    cluster.succeed("study-trial-0", 2.0)
    cluster.settle()
    cluster.job("study-trial-1", "Failed")
    cluster.settle()
    cluster.succeed("study-trial-2", 1.0)
    cluster.settle()
    assert [event.type.removeprefix("gryvia.") for event in cluster.events] == [
        "tuner.started",
        "trial.started",
        "trial.completed",
        "trial.started",
        "trial.failed",
        "trial.started",
        "trial.completed",
        "tuner.completed",
    ]
    last = cluster.events[-1]
    assert (last.best_trial, last.best_value, last.trials_completed, last.trials_failed) == ("study-trial-2", 1.0, 2, 1)
    completed = cluster.events[2]
    assert (completed.name, completed.tuner, completed.number, completed.metric_value) == (
        "study-trial-0",
        "study",
        0,
        2.0,
    )
    assert completed.parameters == cluster.trial(0).parameters
    assert {record.reason for record in cluster.records} == {"Started", "TrialFailed", "Completed"}


def test_a_pass_writes_the_status_once_for_many_completions(study):
    cluster = study(maxTrials=64, parallelism=32)
    cluster.settle()
    before = cluster.writes["status"]
    for trial in cluster.active:
        cluster.succeed(trial.name, 1.0)
    cluster.settle()
    assert cluster.writes["status"] == before + 1


def test_an_adopted_job_keeps_its_parameters_even_without_the_annotation(study):
    cluster = study(maxTrials=2, parallelism=1)
    cluster.settle()
    parameters = cluster.trial(0).parameters
    cluster.raw = {**cluster.raw, "status": {}}
    del cluster.jobs["study-trial-0"]["metadata"]["annotations"]["gryvia.io/trial-parameters"]
    cluster.settle()
    assert cluster.trial(0).parameters == parameters
    assert len(cluster.trials) == 1
