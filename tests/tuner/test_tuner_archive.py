"""The history of a large study: archive codec, window, sizes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.kinds.autotuner import Trial
from gryvia_common.kinds.trials import (
    ARCHIVE_KEY,
    TrialRecord,
    archive_name,
    decode_block,
    encode_block,
    history,
    to_record,
    to_trial,
    trial_name,
    trial_number,
)
from gryvia_common.runtime.world import Refusal

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=12)
RECORDS = st.builds(
    TrialRecord,
    number=st.integers(0, 99_999),
    parameters=st.dictionaries(TEXT, TEXT, max_size=4),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Stopped"]),
    value=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    started=st.sampled_from(["", "2026-01-01T00:00:00Z"]),
    ended=st.sampled_from(["", "2026-01-01T00:00:09Z"]),
    message=TEXT,
    rungs=st.lists(st.tuples(st.integers(0, 1000), st.floats(-1e9, 1e9)), max_size=3).map(tuple),
)


@given(st.lists(RECORDS, max_size=8, unique_by=lambda record: record.number))
def test_a_block_gives_back_what_was_put_in(records):
    text = encode_block(records)
    assert decode_block(text) == tuple(sorted(records, key=lambda record: record.number))
    assert encode_block(reversed(records)) == text


@given(RECORDS, st.from_regex(r"[a-z]([a-z0-9.-]{0,120}[a-z0-9])?", fullmatch=True))
def test_a_record_gives_back_what_the_status_holds(record, tuner):
    trial = to_trial(tuner, record)
    assert to_record(Trial.model_validate(trial.wire())) == record
    assert len(trial.name) <= 63


@given(st.from_regex(r"[a-z]([a-z0-9.-]{0,250}[a-z0-9])?", fullmatch=True), st.integers(0, 10**6))
def test_the_number_is_read_back_from_any_name(tuner, number):
    assert trial_number(trial_name(tuner, number)) == number


def test_long_names_that_differ_only_at_the_end_have_different_trials():
    assert trial_name("a" * 80 + "x", 0) != trial_name("a" * 80 + "y", 0)
    assert trial_name("study", 7) == "study-trial-7"


def test_history_is_archive_and_window_together(study):
    """The window wins where both have a trial; ConfigMaps of others, and what is no archive, do no harm."""
    record = TrialRecord(3, {"a": "1"}, "Succeeded", 1.0)
    block = {
        "metadata": {"name": archive_name("study", 0), "labels": {"gryvia.io/tuner": "study"}},
        "data": {ARCHIVE_KEY: encode_block([record, TrialRecord(4, {"a": "2"}, "Failed", message="old")])},
    }
    others = [
        {"metadata": {"name": "x", "labels": {"gryvia.io/tuner": "other"}}, "data": block["data"]},
        {"metadata": {"name": "y"}, "data": {"k": "v"}},
        {"metadata": {"name": "z", "labels": {"gryvia.io/tuner": "study"}}, "data": {ARCHIVE_KEY: "{damaged"}},
    ]
    tuner = {
        "metadata": {"name": "study"},
        "status": {"trials": [to_trial("study", TrialRecord(4, {"a": "2"}, "Stopped")).wire()]},
    }
    assert [(trial.name, trial.phase) for trial in history(tuner, [block, *others])] == [
        ("study-trial-3", "Succeeded"),
        ("study-trial-4", "Stopped"),
    ]


def test_the_status_of_a_large_study_stays_small_and_its_history_whole(study):
    """1,000 trials with 10 parameters: the object stays below 300 kB, the archive costs one write in about 100 trials."""
    space = [{"name": f"parameter_{n}", "type": "float", "min": 0.001, "max": 1} for n in range(10)]
    cluster = study(parameterSpace=space, maxTrials=1000, parallelism=32)
    largest = 0

    def objective(parameters):
        nonlocal largest
        largest = max(largest, len(json.dumps(cluster.raw)))
        return sum(float(text) for text in parameters.values())

    cluster.run(objective)
    assert cluster.phase == "Succeeded"
    assert largest < 300_000
    assert [trial.name for trial in cluster.trials] == [f"study-trial-{n}" for n in range(1000)]
    assert cluster.writes["configmaps"] <= 14
    assert cluster.status["archivedTrials"] >= 800
    best = min(cluster.trials, key=lambda trial: trial.metric_value)
    assert cluster.status["bestTrial"]["name"] == best.name
    assert all(len(json.dumps(one)) < 1_000_000 for one in cluster.config_maps.values())


def test_very_long_values_shrink_the_window_not_the_promise(study):
    """60 parameters with choices of 900 characters: still far below the limit of an object."""
    space = [
        {"name": f"p{n}", "type": "categorical", "values": [f"{letter}" * 900 for letter in "abc"]} for n in range(60)
    ]
    cluster = study(parameterSpace=space, maxTrials=60, parallelism=2)
    sizes = []

    def objective(parameters):
        sizes.append(len(json.dumps(cluster.status)))
        return 1.0

    cluster.run(objective)
    assert len(cluster.trials) == 60
    assert max(sizes) < 1_000_000
    assert all(len(json.dumps(one)) < 1_000_000 for one in cluster.config_maps.values())


def test_a_straggler_stays_in_the_window_until_it_ends(study):
    cluster = study(maxTrials=700, parallelism=8)
    cluster.settle()
    while len(cluster.trials) < 650:
        cluster.after(10)
        for trial in cluster.active[1:]:
            cluster.succeed(trial.name, 1.0)
        cluster.settle()
    assert cluster.active[0].name == "study-trial-0"
    assert cluster.status["trials"][0]["name"] == "study-trial-0"
    cluster.run(lambda point: 1.0)
    assert [trial.name for trial in cluster.trials] == [f"study-trial-{n}" for n in range(700)]


def test_a_refused_archive_ends_the_study_with_the_reason(study):
    """Nothing is dropped: the trials stay in the status, running ones are stopped, the message says why."""
    cluster = study(maxTrials=2000, parallelism=20)
    cluster.refuse = lambda resource, manifest: (
        Refusal(resource, manifest["metadata"]["name"], "Forbidden", "exceeded quota: configmaps")
        if manifest["kind"] == "ConfigMap"
        else None
    )
    cluster.run(lambda point: 1.0)
    assert cluster.phase == "Failed"
    assert "exceeded quota: configmaps" in cluster.message
    assert len(cluster.trials) == cluster.status["trialsLaunched"] < 250


def test_a_deleted_archive_block_is_filled_again_from_the_jobs(study):
    """A person deletes a ConfigMap: the jobs are still there, the trials come back, none is run again."""
    cluster = study(maxTrials=400, parallelism=20)
    cluster.settle()
    while len(cluster.trials) < 300:
        cluster.after(10)
        for trial in cluster.active:
            cluster.succeed(trial.name, 1.0)
        cluster.settle()
    assert cluster.config_maps
    cluster.config_maps.clear()
    cluster.run(lambda point: 1.0)
    assert len(cluster.trials) == 400
    assert len(cluster.jobs) == 400


@pytest.mark.parametrize("text", ["", "[]", '{"version":2}', '{"version":1}', "null"])
def test_what_is_no_block_is_refused(text):
    with pytest.raises((ValueError, KeyError)):
        decode_block(text)
