"""Whole lives of studies under random order, failures, crashes at every step, and restarts."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gryvia_common.kinds.trials import history

PHASES = ["Succeeded"] * 6 + ["Running", "Pending", "Failed", "Cancelled", "Rejected", "Preempted", "deleted"]
STEPS = ["events", "delete 0", "delete 1", "apply 0", "apply 1", "apply 2", "status"]
LIFE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ACTIVE = ("Pending", "Running")


def alive(job):
    return (job.get("status") or {}).get("phase", "") in ("", "Pending", "Running")


def point_of(trial):
    return tuple(sorted(trial.parameters.items()))


def pass_through(cluster, seen):
    """Passes until nothing changes, each death followed by a new process; the invariants hold after each."""
    for _ in range(25):
        try:
            if not cluster.step():
                return
        except Exception as death:
            if type(death).__name__ != "Died":
                raise
        assert sum(alive(job) for job in cluster.jobs.values()) <= cluster.spec["parallelism"]
        seen.update({trial.name: trial for trial in cluster.trials})
        assert seen.keys() == {trial.name for trial in cluster.trials}, "a trial was lost"
    raise AssertionError("the tuner does not settle")


@LIFE
@given(
    seed=st.integers(0, 2**32),
    algorithm=st.sampled_from(["random", "grid", "bayesian", "asha"]),
    parallelism=st.integers(1, 4),
    most=st.integers(1, 14),
)
def test_any_life_ends_with_exactly_max_trials_distinct_ones(study, seed, algorithm, parallelism, most):
    """Exactly maxTrials trials (what was preempted comes on top), no point twice but for what was preempted, never more
    than parallelism jobs alive, nothing lost, whatever ends how and wherever the service dies."""
    chance = random.Random(seed)
    cluster = study(
        searchAlgorithm=algorithm,
        maxTrials=most,
        parallelism=parallelism,
        ashaConfig={"maxEpochs": 9, "minResource": 1},
    )
    seen = {}
    pass_through(cluster, seen)
    for _ in range(100):
        if cluster.phase != "Running":
            break
        cluster.after(chance.randint(0, 100))
        for name in sorted(name for name, job in cluster.jobs.items() if alive(job)):
            if chance.random() < 0.5:
                continue
            phase, value = chance.choice(PHASES), chance.uniform(-1e6, 1e6)
            if phase == "deleted":
                del cluster.jobs[name]
            elif phase == "Succeeded":
                cluster.succeed(name, value)
            else:
                cluster.job(name, phase, {"epoch": chance.randint(0, 9), "values": {"loss": value}})
        cluster.die_before = chance.choice(["", *STEPS])
        pass_through(cluster, seen)
    cluster.run(lambda point: 1.0)
    trials = cluster.trials
    lost = [trial for trial in trials if (trial.message or "").startswith("lost to the infrastructure")]
    kept = [point_of(trial) for trial in trials if trial not in lost]
    assert len(kept) == len(set(kept))
    abandoned = {point_of(trial) for trial in lost} - set(kept)
    assert len(kept) + len(abandoned) == most
    assert [trial.name for trial in trials] == [f"study-trial-{n}" for n in range(len(trials))]
    assert cluster.status["trialsCompleted"] + cluster.status["trialsFailed"] == len(trials)
    assert not any(alive(job) for job in cluster.jobs.values())
    assert cluster.phase == ("Succeeded" if cluster.status["trialsCompleted"] else "Failed")
    assert len(cluster.happened("trial.started")) == len(trials)
    ends = sum(len(cluster.happened(f"trial.{verb}")) for verb in ("completed", "failed", "stopped"))
    assert ends == len(trials)
    writes = cluster.writes.total()
    for _ in range(3):
        cluster.after(10_000)
        assert not cluster.step()
    assert cluster.writes.total() == writes


@LIFE
@given(
    values=st.lists(st.floats(0, 1), min_size=12, max_size=12),
    deaths=st.lists(st.tuples(st.integers(0, 11), st.sampled_from(STEPS))),
)
def test_deaths_change_nothing_in_the_stream_of_suggestions(study, values, deaths):
    """The same results give the same trials, with and without crashes and a cold memory before every pass."""

    def live(deadly):
        cluster = study(searchAlgorithm="bayesian", maxTrials=12, parallelism=1)
        seen = {}
        for number, value in enumerate(values):
            cluster.die_before = deadly.get(number, "")
            if deadly:
                cluster.restart()
            pass_through(cluster, seen)
            cluster.after(10)
            cluster.succeed(f"study-trial-{number}", value)
        cluster.settle()
        return cluster

    undisturbed, disturbed = live({}), live(dict(deaths))
    assert disturbed.phase == "Succeeded"
    assert [trial.parameters for trial in disturbed.trials] == [trial.parameters for trial in undisturbed.trials]


@LIFE
@given(data=st.data())
def test_a_pass_is_a_pure_function(study, data):
    """The same inputs give the same plan, twice from a warm memory and once from a cold one."""
    cluster = study(searchAlgorithm="bayesian", maxTrials=40, parallelism=3)
    cluster.settle()
    for _ in range(data.draw(st.integers(0, 12))):
        cluster.after(5)
        for trial in cluster.active:
            cluster.succeed(trial.name, data.draw(st.floats(-10, 10)))
        if data.draw(st.booleans()):
            break
        cluster.settle()
    warm = cluster.plan()
    assert cluster.plan() == warm
    cluster.restart()
    assert cluster.plan() == warm


def test_another_uid_gives_another_stream(study):
    one, other = study(maxTrials=5), study(maxTrials=5, uid="uid-2")
    one.run(lambda point: 1.0)
    other.run(lambda point: 1.0)
    assert [trial.parameters for trial in one.trials] != [trial.parameters for trial in other.trials]


def test_job_deletion_never_loses_history(study):
    """After the end (or in the middle) all jobs are deleted: every trial is still there with its value."""
    cluster = study(maxTrials=200, parallelism=10)
    cluster.run(lambda point: float(point["lr"]))
    before = cluster.trials
    cluster.jobs.clear()
    assert not cluster.step()
    assert history(cluster.raw, cluster.config_maps.values()) == before
    assert len(before) == 200
    assert all(trial.metric_value == float(trial.parameters["lr"]) for trial in before)


def test_a_job_of_a_dead_pass_keeps_its_parameters_though_the_world_went_on(study):
    """Killed between a job and the status; before the next pass a result comes in that would have changed the suggestion."""
    cluster = study(searchAlgorithm="bayesian", maxTrials=30, parallelism=2)
    cluster.settle()
    for number in range(14):
        cluster.after(10)
        cluster.succeed(f"study-trial-{number}", float(number % 5))
        cluster.settle()
    cluster.succeed("study-trial-14", 0.5)
    cluster.die_before = "status"
    with pytest.raises(Exception, match=r"^status$"):
        cluster.step()
    job = cluster.jobs["study-trial-16"]
    cluster.succeed("study-trial-15", -100.0)
    cluster.settle()
    assert json.loads(job["metadata"]["annotations"]["gryvia.io/trial-parameters"]) == cluster.trial(16).parameters
    assert cluster.trial(16).phase == "Pending"
    assert cluster.happened("trial.started")[16] == "study-trial-16"
