"""Every spec that cannot run ends in Failed with a message that names the field, the value and the fix."""

from __future__ import annotations

import pytest

from gryvia_tuner.settings import TunerSettings

X = {"name": "x", "type": "float", "min": 0, "max": 1}
BAD = {
    "no trial": ({"maxTrials": 0}, ["spec.maxTrials: 0", "1 to 20000"]),
    "too many trials": ({"maxTrials": 20_001}, ["spec.maxTrials: 20001", "--tuner-max-trials"]),
    "no parameters": ({"parameterSpace": []}, ["spec.parameterSpace", "at least one"]),
    "a parameter without a name": ({"parameterSpace": [{**X, "name": ""}]}, ["parameterSpace[0].name", '""']),
    "a name no variable can have": ({"parameterSpace": [{**X, "name": "a=b"}]}, ["parameterSpace[0].name", '"a=b"']),
    "a name twice": ({"parameterSpace": [X, X]}, ["parameterSpace[1].name", '"x"', "twice"]),
    "no lower bound": ({"parameterSpace": [{"name": "x", "type": "float", "max": 1}]}, ["[0] (x).min", "missing"]),
    "no upper bound": ({"parameterSpace": [{"name": "x", "type": "int", "min": 1}]}, ["[0] (x).max", "missing"]),
    "bounds turned round": ({"parameterSpace": [{**X, "min": 2}]}, ["[0] (x).min: 2", "less than max (1)"]),
    "equal bounds": ({"parameterSpace": [{**X, "min": 1}]}, ["[0] (x).min: 1", "less than max (1)"]),
    "log of zero": ({"parameterSpace": [{**X, "scale": "log"}]}, ["(x).min: 0", "above 0", "linear"]),
    "log of a negative int": (
        {"parameterSpace": [{"name": "x", "type": "int", "min": -1, "max": 4, "scale": "log"}]},
        ["(x).min: -1", "above 0"],
    ),
    "no whole number": (
        {"parameterSpace": [{"name": "x", "type": "int", "min": 0.2, "max": 0.8}]},
        ["(x).min", "no whole number between 0.2 and 0.8"],
    ),
    "bounds no arithmetic can search": ({"parameterSpace": [{**X, "max": 1e308}]}, ["(x)", "1e+308", "within 1e+100"]),
    "step zero": (
        {"parameterSpace": [{"name": "x", "type": "int", "min": 0, "max": 8, "step": 0}]},
        ["(x).step: 0", "1 or more"],
    ),
    "no values": ({"parameterSpace": [{"name": "x", "type": "categorical"}]}, ["(x).values", "at least one"]),
    "a value that is no number": (
        {"parameterSpace": [{"name": "x", "type": "float", "values": ["0.1", "nan"]}]},
        ["(x).values", '"nan"', "categorical"],
    ),
    "a value that is no int": (
        {"parameterSpace": [{"name": "x", "type": "int", "values": ["1", "2.5"]}]},
        ["(x).values", '"2.5"', "int"],
    ),
    "a direction that is none": (
        {"objective": {"metricName": "loss", "direction": "down"}},
        ["spec.objective.direction", '"down"', "minimize or maximize"],
    ),
    "no metric": ({"objective": {"metricName": " ", "direction": "minimize"}}, ["spec.objective.metricName"]),
    "no image": ({"jobTemplate": {"type": "training"}}, ["spec.jobTemplate.image", "missing"]),
    "a job without an end": (
        {"jobTemplate": {"type": "inference", "image": "x"}},
        ["spec.jobTemplate.workloadKind", "never completes", "job"],
    ),
    "a grid too large": (
        {"searchAlgorithm": "grid", "parameterSpace": [{**X, "name": f"x{n}"} for n in range(5)]},
        ["spec.parameterSpace", "161051 points", "100000"],
    ),
    "asha without its settings": ({"searchAlgorithm": "asha"}, ["spec.ashaConfig", "maxEpochs"]),
    "asha without a rung": (
        {"searchAlgorithm": "asha", "ashaConfig": {"maxEpochs": 3, "minResource": 5}},
        ["spec.ashaConfig.maxEpochs: 3", "minResource (5)"],
    ),
    "negative rounds": ({"earlyStoppingRounds": -1}, ["spec.earlyStoppingRounds: -1"]),
}


@pytest.mark.parametrize("name", BAD)
def test_an_impossible_spec_fails_at_once_and_says_what_to_change(study, name):
    changes, words = BAD[name]
    cluster = study(**changes)
    cluster.settle()
    assert cluster.phase == "Failed"
    for word in words:
        assert word in cluster.message
    assert not cluster.jobs
    assert cluster.condition("SpecValid")["status"] == "False"
    assert cluster.happened("tuner.failed") == ["study"]
    assert cluster.happened("tuner.started") == []


def test_several_problems_are_said_together(study):
    cluster = study(maxTrials=0, objective={"metricName": "", "direction": "up"})
    cluster.settle()
    for field in ("maxTrials", "direction", "metricName"):
        assert field in cluster.message


def test_a_mended_spec_is_looked_at_again(study):
    """Only what never began: the message told the user what to change, so changing it must help."""
    cluster = study(maxTrials=0)
    cluster.settle()
    cluster.after(60)
    assert not cluster.step()
    cluster.edit(maxTrials=2)
    cluster.run(lambda point: 1.0)
    assert cluster.phase == "Succeeded"
    assert cluster.condition("SpecValid") == {}
    assert cluster.status["observedGeneration"] == 2


def test_a_study_whose_spec_is_broken_while_it_runs_stops_its_trials(study):
    cluster = study(maxTrials=9, parallelism=3)
    cluster.settle()
    cluster.edit(objective={"metricName": "loss", "direction": "sideways"})
    cluster.settle()
    assert cluster.phase == "Failed"
    assert "sideways" in cluster.message
    assert [trial.phase for trial in cluster.trials] == ["Stopped"] * 3
    assert not cluster.jobs


def test_a_spec_that_does_not_parse_fails_before_and_waits_during_the_study(study):
    cluster = study()
    plan = cluster.controller.invalid(cluster.raw, "spec.maxTrials: required", cluster.now)
    assert plan.status.phase == "Failed"
    assert plan.status.message == "spec.maxTrials: required"
    cluster.settle()
    plan = cluster.controller.invalid(cluster.raw, "spec.maxTrials: required", cluster.now)
    assert plan.status.phase == "Running"
    assert [trial.wire() for trial in plan.status.trials] == cluster.status["trials"]
    cluster.run(lambda point: 1.0)
    assert cluster.controller.invalid(cluster.raw, "broken", cluster.now).status is None


def test_a_finished_study_is_never_looked_at_again(study):
    cluster = study(maxTrials=2)
    cluster.run(lambda point: 1.0)
    before = cluster.status
    cluster.edit(maxTrials=50)
    del cluster.jobs["study-trial-0"]
    assert not cluster.step()
    assert cluster.status == before


def test_a_deleted_tuner_starts_nothing(study):
    cluster = study()
    cluster.raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not cluster.step()
    assert not cluster.jobs


def test_fields_without_effect_are_named(study):
    cluster = study(
        parameterSpace=[
            {"name": "x", "type": "float", "min": 0, "max": 1, "step": 3},
            {"name": "y", "type": "int", "values": ["2", "1"], "min": 0, "max": 9, "scale": "log"},
            {"name": "z", "type": "int", "min": 1, "max": 9, "step": 2, "scale": "log"},
        ],
        ashaConfig={"maxEpochs": 3},
        maxGpuHours=2,
        parallelism=0,
        jobTemplate={"image": "i", "env": [{"name": "HP_x", "value": "mine"}]},
    )
    cluster.settle()
    said = cluster.condition("FieldsIgnored")["message"]
    for word in (
        "parameter x: step",
        "parameter y: min and max",
        "parameter y: scale",
        "parameter z: scale log",
        "ashaConfig",
        "maxGpuHours",
        "parallelism: 0 acts as 1",
        "jobTemplate.env HP_x",
    ):
        assert word in said
    assert len(cluster.active) == 1


def test_a_sound_spec_has_no_such_condition(study):
    cluster = study()
    cluster.settle()
    assert cluster.condition("FieldsIgnored") == {}
    assert cluster.message == ""


def test_parallelism_is_capped_with_a_word(study):
    cluster = study(parallelism=9, maxTrials=20, settings=TunerSettings(tuner_max_parallelism=4))
    cluster.settle()
    assert len(cluster.active) == 4
    assert "parallelism 9 is capped at 4" in cluster.message
