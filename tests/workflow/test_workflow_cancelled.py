"""Cancelling a run: what becomes of each step, who did it, that it counts once; and any life of any graph that is cancelled in any
moment, also when the service dies over it, and resumed."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.resources import PODS
from gryvia_workflow.settings import WorkflowSettings

from . import model
from .test_workflow_life import JOB, LIFE, begin

CANCEL = "gryvia.io/cancel"
ANN = json.dumps({"by": "ann"})


@pytest.mark.parametrize("job", [True, False])
def test_what_runs_is_stopped_the_rest_is_skipped_and_finally_runs(workflow, job):
    block = {"jobTemplate": JOB} if job else {}
    cluster = workflow(
        {"name": "done"},
        {"name": "busy", "dependsOn": ["done"], **block},
        {"name": "next", "dependsOn": ["busy"]},
        {"name": "clean", "finally": True, "condition": "steps.busy.status == 'Failed'"},
    )
    cluster.finish("wf-done", {"n": "1"})
    cluster.annotate(CANCEL, ANN)
    assert cluster.phases == {"done": "Succeeded", "busy": "Failed", "next": "Skipped", "clean": "Running"}
    assert cluster.names(PODS if not job else AI_JOB.resource) == (["wf-clean", "wf-done"] if not job else [])
    assert (cluster.phase, cluster.message) == ("Running", "cancelled by ann")
    assert CANCEL not in cluster.raw["metadata"]["annotations"]
    cluster.finish("wf-clean")
    assert (cluster.phase, cluster.message) == ("Failed", "cancelled by ann")
    assert cluster.status["cancelled"]["by"] == "ann"
    assert cluster.condition("WorkflowComplete")["reason"] == "Failed"
    assert [event.message for event in cluster.happened("failed")] == ["cancelled by ann"]
    assert [step.message for step in cluster.happened("step") if step.step == "busy"] == ["", "cancelled by ann"]


def test_by_whom_need_not_be_known(workflow):
    cluster = workflow({"name": "a"})
    cluster.annotate(CANCEL, "true")
    assert (cluster.phase, cluster.message) == ("Failed", "cancelled")
    assert set(cluster.status["cancelled"]) == {"at"}


@pytest.mark.parametrize("text", ["false", "yes", "", "[]", '"by"', '{"by": 3}', '{"who": "ann"}'])
def test_what_is_no_wish_to_cancel_does_nothing(workflow, text):
    cluster = workflow({"name": "a"})
    cluster.annotate(CANCEL, text)
    assert cluster.phase == "Running"
    cluster.finish("wf-a")
    before = cluster.writes.total()
    cluster.after(1000)
    assert (cluster.phase, cluster.writes.total()) == ("Succeeded", before)


def test_what_failed_before_is_still_said(workflow):
    cluster = workflow({"name": "a"}, {"name": "b"})
    cluster.finish("wf-a", fail="no space")
    cluster.annotate(CANCEL, ANN)
    assert cluster.message.startswith("cancelled by ann; step a: ")
    assert "no space" in cluster.message


def test_items_approvals_and_steps_that_wait_for_another_attempt(workflow):
    cluster = workflow(
        {"name": "each", "withItems": [1, 2, 3]},
        {"name": "ask", "type": "approval"},
        {"name": "flaky", "retries": 3, "retryBackoffSeconds": 600},
        settings=WorkflowSettings(workflow_max_parallel_steps=2),
    )
    cluster.finish("wf-each-i0")
    cluster.finish("wf-each-i1")
    cluster.finish("wf-flaky", fail="no")
    assert cluster.phases == {"each": "Running", "ask": "Running", "flaky": "Pending"}
    cluster.annotate(CANCEL, "true")
    assert set(cluster.phases.values()) == {"Failed"}
    assert [item["phase"] for item in cluster.steps["each"]["items"]] == ["Succeeded", "Succeeded", "Failed"]
    assert cluster.message == "cancelled"
    assert set(cluster.names(PODS)) == {"wf-each-i0", "wf-each-i1", "wf-flaky"}


@pytest.mark.parametrize("more", [{}, {"schedule": "0 * * * *"}])
def test_without_a_run_under_way_nothing_changes(workflow, more):
    cluster = workflow({"name": "a"}, **more)
    if more:
        cluster.after(3600)
    cluster.finish("wf-a" + ("-n1" if more else ""))
    before = cluster.status
    cluster.annotate(CANCEL, "true")
    assert cluster.status == before
    assert CANCEL not in cluster.raw["metadata"]["annotations"]
    assert [one.message for one in cluster.records if one.reason == "NothingToCancel"] == [
        "gryvia.io/cancel: no run is under way"
    ]


def test_finally_steps_are_not_cancelled(workflow):
    cluster = workflow({"name": "a"}, {"name": "last", "finally": True})
    cluster.finish("wf-a")
    cluster.annotate(CANCEL, "true")
    assert cluster.phases == {"a": "Succeeded", "last": "Running"}
    assert "only finally steps are left" in cluster.records[-1].message
    cluster.finish("wf-last")
    assert (cluster.phase, cluster.message) == ("Succeeded", "")


def test_what_ended_by_itself_in_that_moment_was_not_cancelled(workflow):
    cluster = workflow({"name": "a"})
    cluster.pod("wf-a", {"n": "1"})
    cluster.annotate(CANCEL, "true")
    assert cluster.phase == "Succeeded"
    assert "cancelled" not in cluster.status


def test_before_the_service_has_seen_the_workflow(workflow):
    cluster = workflow({"name": "a"}, {"name": "last", "finally": True}, annotations={CANCEL: ANN})
    assert cluster.phases == {"a": "Skipped", "last": "Running"}
    cluster.finish("wf-last")
    assert (cluster.phase, cluster.message) == ("Failed", "cancelled by ann")


def test_the_next_scheduled_run_goes_on(workflow):
    cluster = workflow({"name": "a"}, schedule="0 * * * *")
    cluster.after(3600)
    cluster.annotate(CANCEL, ANN)
    assert (cluster.phase, cluster.message) == ("Scheduled", "cancelled by ann")
    assert cluster.condition("WorkflowComplete")["reason"] == "Failed"
    cluster.after(3600)
    assert cluster.running == ["wf-a-n2"]
    assert "cancelled" not in cluster.status
    cluster.finish("wf-a-n2")
    assert (cluster.phase, cluster.message) == ("Scheduled", "")


def test_a_cancelled_run_is_resumed_with_all_that_was_left_out(workflow):
    cluster = workflow(
        {"name": "a"}, {"name": "b"}, {"name": "c"}, settings=WorkflowSettings(workflow_max_parallel_steps=1)
    )
    cluster.finish("wf-a")
    cluster.annotate(CANCEL, "true")
    assert cluster.phases == {"a": "Succeeded", "b": "Failed", "c": "Skipped"}
    cluster.annotate("gryvia.io/retry-failed", "1")
    assert "cancelled" not in cluster.status
    cluster.finish("wf-b-r1")
    cluster.finish("wf-c")
    assert set(cluster.phases.values()) == {"Succeeded"}
    assert cluster.phase == "Succeeded"


def test_a_step_added_to_a_cancelled_run_does_not_begin(workflow):
    cluster = workflow({"name": "a"}, {"name": "last", "finally": True})
    cluster.annotate(CANCEL, "true")
    more = {"name": "late", "script": {"image": "i", "command": ["true"]}}
    cluster.edit(steps=[*cluster.raw["spec"]["steps"], more])
    assert cluster.phases == {"a": "Failed", "last": "Running", "late": "Skipped"}


def test_a_child_that_nobody_knew_of_is_stopped_when_it_is_seen(workflow):
    """A crash after its creation, and a view that is behind."""
    cluster = workflow({"name": "a"}, {"name": "b", "dependsOn": ["a"]})
    cluster.pod("wf-a")
    cluster.step()
    hidden = cluster.objects.pop((PODS, "wf-b"))
    cluster.annotate(CANCEL, "true")
    assert cluster.phase == "Failed"
    cluster.objects[PODS, "wf-b"] = hidden
    cluster.settle()
    assert (PODS, "wf-b") not in cluster.objects


def not_ended(cluster, last):
    found = [one for (type, _), one in cluster.objects.items() if type in (PODS, AI_JOB.resource)]
    return {
        one["metadata"]["labels"]["gryvia.io/step"]
        for one in found
        if not (one.get("status") or {}).get("phase") and "gryvia.io/step" in one["metadata"].get("labels", {})
    } - last


@LIFE
@given(seed=st.integers(0, 2**32), size=st.integers(1, 25), slots=st.integers(1, 10), moment=st.integers(0, 40))
@example(seed=1137, size=17, slots=5, moment=3)
def test_any_life_that_is_cancelled_in_any_moment_and_resumed(workflow, seed, size, slots, moment):
    life, plans = begin(workflow, seed, size, slots)
    cluster, chance = life.cluster, random.Random(seed)
    last = {plan.name for plan in plans if plan.last}
    for _ in range(moment):
        if cluster.phase == "Running" and (set(cluster.phases) - last) - set(life.over):
            life.end(chance.choice(cluster.running))
            life.settle()
    idle = not ((set(cluster.phases) - last) - set(life.over))
    ended = dict(life.over)
    cluster.raw["metadata"]["annotations"][CANCEL] = ANN
    life.settle()
    assert CANCEL not in cluster.raw["metadata"]["annotations"]
    if idle:
        assert "cancelled" not in cluster.status
        life.play()
        assert cluster.phases == model.ends(plans)
        return
    assert not_ended(cluster, last) == set()
    assert {name: phase for name, phase in cluster.phases.items() if name in ended} == ended
    assert all(cluster.phases[name] in ("Succeeded", "Failed", "Skipped") for name in set(cluster.phases) - last)
    life.play()
    # Cancelled, unless what a death of the service left to end did so by itself first.
    if "cancelled" in cluster.status:
        assert (cluster.phase, cluster.status["cancelled"]["by"]) == ("Failed", "ann")
        assert len(cluster.happened("failed")) == 1
    before = cluster.writes.total()
    cluster.after(10**6)
    assert cluster.writes.total() == before
    if cluster.phase == "Failed":
        done = {name for name, phase in cluster.phases.items() if phase == "Succeeded" and name not in last}
        for plan in plans:
            plan.fails = [0 for _ in plan.fails]
        life.over.clear()
        cluster.annotate("gryvia.io/retry-failed", "again")
        life.play()
        assert cluster.phase == "Succeeded"
        assert {name for name in done if cluster.phases[name] != "Succeeded"} == set()
        assert "cancelled" not in cluster.status
