"""Running again on request: with and without a schedule, during a run, with an edited spec, and whenever the service dies."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.kube.resources import CONFIG_MAPS, PODS

from .test_workflow_life import LIFE

RUN = "gryvia.io/run-requested"
BAD = [{"name": "a", "dependsOn": ["b"], "script": {"image": "i", "command": ["true"]}}]


def done(cluster):
    for name in cluster.running:
        cluster.finish(name, {"n": name})


def test_a_finished_workflow_runs_again_with_a_clean_status_and_the_earlier_run_is_kept(workflow):
    cluster = workflow(
        {"name": "a"}, {"name": "ask", "type": "approval", "dependsOn": ["a"]}, annotations={RUN: "at the start"}
    )
    cluster.finish("wf-a", {"n": "1"})
    cluster.answer("ask")
    cluster.answer("ask", by="too late")
    cluster.after(60)
    cluster.annotate(RUN, "1")
    assert (cluster.phase, cluster.status["run"], cluster.running) == ("Running", 1, ["wf-a-n1"])
    assert cluster.phases == {"a": "Running", "ask": "Pending"}
    assert "outputs" not in cluster.steps["a"]
    first = json.loads(cluster.objects[CONFIG_MAPS, "wf-run-n0"]["data"]["run.json"])
    assert (first["phase"], first["stepStatuses"][0]["outputs"]) == ("Succeeded", {"n": "1"})
    cluster.finish("wf-a-n1")
    assert cluster.phases["ask"] == "Running", "an answer to another run counted"
    cluster.answer("ask")
    assert (cluster.phase, cluster.status["runRequested"]) == ("Succeeded", "1")
    assert [event.run for event in cluster.happened("started")] == [0, 1]
    before = cluster.writes.total()
    cluster.after(10**6)
    assert cluster.writes.total() == before


def test_between_two_runs_of_a_schedule_which_goes_on_as_before(workflow):
    cluster = workflow({"name": "a"}, schedule="0 * * * *")
    cluster.after(600)
    cluster.annotate(RUN, "now")
    assert cluster.running == ["wf-a-n1"]
    assert "lastScheduleTime" not in cluster.status
    assert cluster.status["nextScheduleTime"] == "2026-01-01T01:00:00Z"
    done(cluster)
    assert cluster.phase == "Scheduled"
    cluster.after(3000)
    assert (cluster.running, cluster.status["lastScheduleTime"]) == (["wf-a-n2"], "2026-01-01T01:00:00Z")


def test_a_suspended_schedule_is_no_obstacle(workflow):
    cluster = workflow({"name": "a"}, schedule="0 * * * *", suspend=True)
    cluster.annotate(RUN, "now")
    assert cluster.running == ["wf-a-n1"]
    done(cluster)
    cluster.after(10**5)
    assert (cluster.phase, cluster.status["run"]) == ("Scheduled", 1)


@pytest.mark.parametrize("more", [{}, {"schedule": "0 * * * *"}])
def test_during_a_run_it_waits_and_is_honoured_once(workflow, more):
    cluster = workflow({"name": "a"}, **more)
    if more:
        cluster.after(3600)
    before = cluster.running
    cluster.annotate(RUN, "1")
    cluster.annotate(RUN, "2")
    assert cluster.running == before
    done(cluster)
    assert cluster.phase == "Running"
    assert cluster.running != before
    done(cluster)
    assert cluster.phase == ("Scheduled" if more else "Succeeded")


def test_a_run_that_is_due_meets_the_request_too(workflow):
    cluster = workflow({"name": "a"}, schedule="0 * * * *")
    cluster.raw["metadata"]["annotations"][RUN] = "1"
    cluster.after(3600)
    assert cluster.status["lastScheduleTime"] == "2026-01-01T01:00:00Z"
    done(cluster)
    assert (cluster.phase, cluster.status["run"]) == ("Scheduled", 1)


def test_a_cancelled_run_makes_room_for_the_one_that_was_asked_for(workflow):
    cluster = workflow({"name": "a"})
    cluster.annotate(RUN, "1")
    cluster.annotate("gryvia.io/cancel", "true")
    assert cluster.running == ["wf-a-n1"]
    assert "cancelled" not in cluster.status
    assert json.loads(cluster.objects[CONFIG_MAPS, "wf-run-n0"]["data"]["run.json"])["message"] == "cancelled"


def test_an_edit_alone_runs_nothing_and_says_what_would(workflow):
    cluster = workflow({"name": "a"})
    done(cluster)
    ended = cluster.status
    cluster.edit(steps=[*cluster.raw["spec"]["steps"], {"name": "b", "script": {"image": "i", "command": ["true"]}}])
    condition = cluster.condition("SpecPending")
    assert (condition["status"], condition["message"]) == (
        "True",
        "the spec was changed after the run ended; `gryvia workflows run wf` runs it",
    )
    assert {key: cluster.status[key] for key in ("phase", "stepStatuses", "stepsTotal")} == {
        key: ended[key] for key in ("phase", "stepStatuses", "stepsTotal")
    }
    before = cluster.writes.total()
    cluster.after(10**6)
    assert cluster.writes.total() == before
    cluster.annotate(RUN, "1")
    assert set(cluster.running) == {"wf-a-n1", "wf-b-n1"}
    assert cluster.condition("SpecPending") == {}


def test_of_a_failed_run_the_edited_spec_may_also_be_resumed(workflow):
    cluster = workflow({"name": "a"})
    cluster.finish("wf-a", fail="no")
    cluster.edit(parameters={"x": "1"})
    assert "`gryvia workflows retry wf` goes on with it" in cluster.condition("SpecPending")["message"]
    cluster.annotate("gryvia.io/retry-failed", "1")
    assert cluster.condition("SpecPending") == {}
    cluster.finish("wf-a-r1")
    assert cluster.phase == "Succeeded"


def test_a_spec_that_cannot_run_is_refused_and_the_ended_run_stays_as_it_is(workflow):
    cluster = workflow({"name": "a"})
    done(cluster)
    cluster.edit(steps=BAD)
    assert 'there is no step "b"' in cluster.condition("SpecPending")["message"]
    assert cluster.condition("SpecPending")["reason"] == "Invalid"
    cluster.annotate(RUN, "1")
    assert (cluster.phase, cluster.status["runRequested"]) == ("Succeeded", "1")
    assert cluster.steps["a"]["phase"] == "Succeeded"
    assert [one.reason for one in cluster.records if one.type == "Warning"] == ["RunRefused"]
    cluster.edit(steps=[{"name": "a", "script": {"image": "i", "command": ["true"]}}])
    assert cluster.phase == "Succeeded", "a refused request is not kept"
    cluster.annotate(RUN, "2")
    assert cluster.running == ["wf-a-n1"]


def test_of_a_schedule_a_spec_that_cannot_run_refuses_too(workflow):
    cluster = workflow({"name": "a"}, schedule="0 * * * *")
    steps = cluster.raw["spec"]["steps"]
    cluster.edit(steps=BAD)
    cluster.annotate(RUN, "1")
    assert cluster.phase == "Failed"
    assert "RunRefused" in [one.reason for one in cluster.records]
    cluster.edit(steps=steps)
    assert cluster.phase == "Scheduled"


def test_a_schedule_taken_away_together_with_an_edit_of_the_steps(workflow):
    cluster = workflow({"name": "a"}, schedule="0 * * * *")
    cluster.after(3600)
    done(cluster)
    cluster.edit(schedule=None, steps=[{"name": "b", "script": {"image": "i", "command": ["true"]}}])
    assert (cluster.phase, list(cluster.phases)) == ("Succeeded", ["a"])
    cluster.annotate(RUN, "1")
    assert cluster.running == ["wf-b-n2"]


@LIFE
@given(seed=st.integers(0, 2**32), scheduled=st.booleans())
def test_requests_at_any_time_whatever_dies_never_give_two_runs_at_once_nor_lose_the_last(workflow, seed, scheduled):
    chance = random.Random(seed)
    cluster = workflow(
        {"name": "a"}, {"name": "b", "dependsOn": ["a"]}, **({"schedule": "*/10 * * * *"} if scheduled else {})
    )
    asked = 0

    def look():
        alive = [one for (type, _), one in cluster.objects.items() if type == PODS and not one.get("status")]
        assert len({one["metadata"]["labels"]["gryvia.io/run"] for one in alive}) <= 1
        assert max(cluster.made.values(), default=0) <= 1

    for _ in range(chance.randint(3, 20)):
        cluster.die_before = chance.choice([-1, *range(7)])
        what = chance.choice(["ask", "finish", "finish", "wait", "cancel"])
        if what == "ask":
            asked += 1
            cluster.annotate(RUN, str(asked))
        elif what == "cancel":
            cluster.annotate("gryvia.io/cancel", "true")
        elif what == "finish" and cluster.running:
            cluster.finish(cluster.running[0])
        else:
            cluster.after(chance.choice([1, 100, 700]))
        cluster.die_before = -1
        look()
    while cluster.phase == "Running":
        cluster.finish(cluster.running[0])
        look()
    assert cluster.status.get("runRequested", "0") == str(asked)
    runs = cluster.status["run"]
    if not scheduled:
        assert runs <= asked
        assert runs >= bool(asked)
    if runs <= 10:
        kept = [name for name in cluster.names(CONFIG_MAPS) if name.startswith("wf-run-n")]
        assert len(kept) == max(0, runs - scheduled)
