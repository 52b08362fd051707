"""Schedules in whole workflows, pass by pass, with deaths of the service between any two effects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workflow.conftest import SCRIPT, Cluster

from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kube.resources import PODS

Make = Callable[..., Any]
T0 = datetime(2026, 1, 1, tzinfo=UTC)


def scheduled(cluster: Any) -> tuple[int, str]:
    """The run and the time it is for."""
    return cluster.status["run"], cluster.status["lastScheduleTime"][11:16]


def finish_run(cluster: Any) -> None:
    for name in cluster.running:
        cluster.finish(name)


def test_between_runs_it_is_scheduled_and_each_run_begins_at_its_time(workflow: Make) -> None:
    cluster = workflow({"name": "a"}, schedule="*/5 * * * *")
    assert (cluster.phase, cluster.status["run"], cluster.status["nextScheduleTime"]) == (
        "Scheduled",
        0,
        "2026-01-01T00:05:00Z",
    )
    assert cluster.last.again_at == T0 + timedelta(minutes=5)
    cluster.after(300)
    assert (cluster.phase, scheduled(cluster), cluster.running) == ("Running", (1, "00:05"), ["wf-a-n1"])
    finish_run(cluster)
    assert (cluster.phase, cluster.status["nextScheduleTime"]) == ("Scheduled", "2026-01-01T00:10:00Z")
    cluster.after(300)
    assert scheduled(cluster) == (2, "00:10")


def test_nine_hours_of_outage_give_one_run_of_the_newest_time(workflow: Make) -> None:
    cluster = workflow({"name": "a"}, schedule="*/5 * * * *")
    cluster.restart()
    cluster.after(9 * 3600 + 180)
    assert scheduled(cluster) == (1, "09:00")
    assert cluster.status["missedRuns"] == 107
    finish_run(cluster)
    assert (cluster.phase, cluster.status["nextScheduleTime"][11:16]) == ("Scheduled", "09:05")


def test_catch_up_all_runs_them_one_after_the_other(workflow: Make) -> None:
    cluster = workflow({"name": "a"}, schedule="*/5 * * * *", catchUp="all", catchUpLimit=3)
    cluster.after(9 * 3600 + 180)
    found = []
    while cluster.phase == "Running":
        found.append(scheduled(cluster))
        assert len(cluster.running) == 1
        finish_run(cluster)
    assert found == [(1, "08:50"), (2, "08:55"), (3, "09:00")]
    assert "pendingRuns" not in cluster.status


@pytest.mark.parametrize("policy", ["none", "latest", "all"])
def test_a_run_longer_than_its_interval_and_five_restarts_are_one_run_and_one_follow_up(
    workflow: Make, policy: str
) -> None:
    cluster = workflow({"name": "a"}, schedule="*/5 * * * *", catchUp=policy)
    cluster.after(300)
    for _ in range(5):
        cluster.restart()
        cluster.after(400)
        assert (scheduled(cluster), cluster.names(PODS)) == ((1, "00:05"), ["wf-a-n1"])
    writes = cluster.writes.total()
    cluster.after(60)
    assert cluster.writes.total() == writes, "times that pass during a run cost no writes"
    finish_run(cluster)
    assert (scheduled(cluster), cluster.running) == ((2, "00:35"), ["wf-a-n2"])
    assert cluster.status["startTime"] == timestamp(cluster.now)
    finish_run(cluster)
    assert (cluster.phase, cluster.status["run"]) == ("Scheduled", 2)


def test_suspension_in_a_run_lets_it_end_and_starts_nothing_until_the_time_after_it(workflow: Make) -> None:
    cluster = workflow({"name": "a"}, schedule="*/5 * * * *")
    cluster.after(300)
    cluster.edit(suspend=True)
    cluster.after(900)
    finish_run(cluster)
    assert cluster.phase == "Scheduled"
    assert "spec.suspend" in cluster.message
    assert "nextScheduleTime" not in cluster.status
    cluster.after(3 * 86400)
    cluster.edit(suspend=False)
    assert (cluster.phase, cluster.status["run"], cluster.message) == ("Scheduled", 1, "")
    assert cluster.status["nextScheduleTime"] == "2026-01-04T00:25:00Z"


def test_an_edit_of_the_schedule_during_a_run_counts_from_then(workflow: Make) -> None:
    cluster = workflow({"name": "a"}, schedule="0 12 * * *")
    cluster.after(12 * 3600)
    cluster.edit(schedule="*/5 * * * *")
    assert cluster.status["nextScheduleTime"] == "2026-01-01T12:05:00Z"
    cluster.after(60)
    finish_run(cluster)
    cluster.after(240)
    assert scheduled(cluster) == (2, "12:05")


def test_a_schedule_that_never_comes_says_so(workflow: Make) -> None:
    cluster = workflow({"name": "a"}, schedule="0 0 30 2 *")
    assert cluster.phase == "Scheduled"
    assert "names no time within the next five years" in cluster.message
    assert cluster.last.again_at is None


def test_a_schedule_that_is_mended_does_not_make_up_for_the_time_before(workflow: Make) -> None:
    cluster = workflow({"name": "a"}, schedule="*/5 * * * * *")
    assert (cluster.phase, cluster.made) == ("Failed", {})
    assert "there is no field for seconds" in cluster.message
    cluster.after(86400)
    cluster.edit(schedule="*/5 * * * *")
    assert (cluster.phase, cluster.status["nextScheduleTime"]) == ("Scheduled", "2026-01-02T00:05:00Z")


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 1500), st.integers(-1, 6), st.booleans()), min_size=1, max_size=15),
    st.sampled_from(("none", "latest", "all")),
)
def test_whenever_it_dies_no_time_runs_twice_and_no_two_runs_at_once(
    moves: list[tuple[int, int, bool]], policy: str
) -> None:
    spec = {"steps": [{"name": "a", "script": SCRIPT}], "schedule": "*/5 * * * *", "catchUp": policy}
    cluster = Cluster(spec, now=T0)
    cluster.settle()
    found: dict[int, str] = {}
    for seconds, die_before, finishes in moves:
        cluster.die_before = die_before
        cluster.after(seconds)
        if cluster.phase == "Running":
            run, time = cluster.status["run"], cluster.status["lastScheduleTime"]
            assert found.setdefault(run, time) == time
            assert cluster.running == [f"wf-a-n{run}"]
            if finishes:
                cluster.finish(cluster.running[0])
    assert list(found.values()) == sorted(set(found.values()))
    assert (
        sorted(found) == list(range(min(found, default=1), max(found, default=0) + 1))
        or len(found) < cluster.status["run"]
    )
    assert all(count == 1 for name, count in cluster.made.items() if name.startswith("wf-a-n"))
