"""The rules of a run: what is skipped, tried again, timed out, lost, looped over, resumed, and in which order it goes."""

from __future__ import annotations

import json

import pytest

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.resources import CONFIG_MAPS, PODS
from gryvia_common.runtime.world import Refusal
from gryvia_workflow.settings import WorkflowSettings

JOB = {"type": "training", "gpus": 0, "image": "python:3.11"}


def script(*args):
    return {"image": "python:3.11", "command": ["python"], "args": list(args)}


def test_a_failure_skips_what_depends_on_it_and_leaves_the_rest_alone(workflow):
    cluster = workflow(
        {"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b"]}, {"name": "other"}
    )
    cluster.finish("wf-a", fail="no")
    assert cluster.phases == {"a": "Failed", "b": "Skipped", "c": "Skipped", "other": "Running"}
    assert cluster.phase == "Running"
    cluster.finish("wf-other")
    assert cluster.phase == "Failed"
    assert cluster.steps["c"]["message"] == "step b is Skipped"


@pytest.mark.parametrize(
    ("condition", "fails", "expected"),
    [
        ("steps.pre-a.status == 'Succeeded'", False, "Running"),
        ("steps.pre-a.status == 'Succeeded'", True, "Skipped"),
        ("steps.pre-a.status != 'Succeeded'", True, "Running"),
        ("steps.pre-a.status == 'Failed' && steps.b.status == 'Succeeded'", True, "Running"),
        ("double(steps.pre-a.outputs.val-acc) > 0.5", False, "Running"),
        ("double(steps.pre-a.outputs.val-acc) > 0.95", False, "Skipped"),
        ('steps["pre-a"].outputs["val-acc"].startsWith("0.") && parameters.mode in ["full", "fast"]', False, "Running"),
        ("steps.pre-a.outputs.missing == 'x'", False, "Failed"),
        ("double(steps.pre-a.outputs.word) > 0.5", False, "Failed"),
        ("has(steps.pre-a.outputs.word) && !has(steps.pre-a.outputs.nope)", False, "Running"),
        ("steps.all(name, steps[name].status == 'Succeeded')", False, "Running"),
    ],
)
def test_conditions(workflow, condition, fails, expected):
    cluster = workflow(
        {"name": "pre-a"},
        {"name": "b"},
        {"name": "c", "dependsOn": ["pre-a", "b"], "condition": condition},
        parameters={"mode": "full"},
    )
    cluster.finish("wf-b")
    cluster.finish("wf-pre-a", {"val-acc": "0.9", "word": "inf"}, fail="no" if fails else "")
    assert cluster.phases["c"] == expected
    if expected == "Failed":
        assert cluster.steps["c"]["message"].startswith(f'condition "{condition}": ')


def test_nothing_of_a_skipped_step_is_evaluated(workflow):
    """argoproj/argo-workflows#1807: the payload of a step with a false condition names an output that is not there."""
    cluster = workflow(
        {"name": "x"},
        {
            "name": "y",
            "dependsOn": ["x"],
            "condition": "steps.x.status == 'Failed'",
            "withItems": "{{steps.x.outputs.list}}",
            "script": script("{{steps.x.outputs.missing}}"),
        },
    )
    cluster.finish("wf-x")
    assert cluster.phases["y"] == "Skipped"
    assert cluster.phase == "Succeeded"


def test_an_unresolved_placeholder_fails_the_attempt_with_a_sentence(workflow):
    cluster = workflow(
        {"name": "x"}, {"name": "y", "dependsOn": ["x"], "retries": 1, "script": script("{{steps.x.outputs.k}}")}
    )
    cluster.finish("wf-x", {"acc": "1", "loss": "2"})
    step = cluster.steps["y"]
    assert (step["phase"], step["retriesAttempted"]) == ("Failed", 1)
    assert step["message"] == "{{steps.x.outputs.k}}: step x has the outputs acc, loss"
    assert cluster.names(PODS) == ["wf-x"]


def test_finally_steps_run_at_the_end_whatever_happened(workflow):
    cluster = workflow(
        {"name": "a"},
        {"name": "b", "dependsOn": ["a"]},
        {"name": "clean", "finally": True},
        {"name": "tell", "finally": True, "dependsOn": ["clean"]},
        {"name": "cheer", "finally": True, "condition": "steps.a.status == 'Succeeded'"},
    )
    assert cluster.running == ["wf-a"]
    cluster.finish("wf-a", fail="no")
    assert cluster.phases == {"a": "Failed", "b": "Skipped", "clean": "Running", "tell": "Pending", "cheer": "Skipped"}
    cluster.finish("wf-clean", fail="no")
    assert cluster.running == ["wf-tell"]
    cluster.finish("wf-tell")
    assert cluster.phase == "Failed"


def test_retries_back_off_and_there_is_no_wait_after_the_last(workflow):
    cluster = workflow(
        {"name": "a", "retries": 3, "retryBackoffSeconds": 10, "retryBackoffFactor": 3, "retryBackoffMaxSeconds": 60}
    )
    waits = []
    for attempt in range(3):
        name = f"wf-a-r{attempt}" if attempt else "wf-a"
        cluster.finish(name, fail="no")
        assert cluster.phases["a"] == "Pending"
        assert cluster.steps["a"]["completionTime"]
        seconds = int((cluster.last.again_at - cluster.now).total_seconds())
        waits.append(seconds)
        cluster.after(seconds - 1)
        assert cluster.running == []
        cluster.after(1)
        assert cluster.running == [f"wf-a-r{attempt + 1}"]
    assert waits == [10, 30, 60]
    cluster.finish("wf-a-r3", fail="no")
    assert cluster.phase == "Failed"
    assert cluster.steps["a"]["retriesAttempted"] == 3
    assert cluster.names(PODS) == ["wf-a", "wf-a-r1", "wf-a-r2", "wf-a-r3"]


def test_what_the_infrastructure_lost_is_run_again_without_using_a_retry(workflow):
    """argoproj/argo-workflows#1796, kubeflow/pipelines#4333: a lost node during the first attempt of a step without retries."""
    for payload in ({}, {"jobTemplate": JOB}):
        cluster = workflow({"name": "a", **payload})
        cluster.finish("wf-a", lost=True)
        assert cluster.running == ["wf-a-r1"]
        assert "retriesAttempted" not in cluster.steps["a"]
        assert cluster.steps["a"]["timesLost"] == 1
        cluster.finish("wf-a-r1")
        assert cluster.phase == "Succeeded"


def test_there_is_an_end_to_rerunning_what_is_lost(workflow):
    cluster = workflow({"name": "a", "retries": 5})
    for name in ("wf-a", "wf-a-r1", "wf-a-r2", "wf-a-r3"):
        cluster.finish(name, lost=True)
    assert cluster.phase == "Failed"
    assert "lost to the infrastructure 4 times, which is the limit" in cluster.steps["a"]["message"]


def test_a_child_that_somebody_deleted_is_run_again(workflow):
    cluster = workflow({"name": "a", "jobTemplate": JOB})
    del cluster.objects[AI_JOB.resource, "wf-a"]
    cluster.settle()
    assert cluster.running == ["wf-a-r1"]


def test_a_timeout_deletes_the_child_and_counts_as_a_failure(workflow):
    cluster = workflow({"name": "a", "jobTemplate": JOB, "timeoutSeconds": 60, "retries": 1})
    cluster.after(60)
    assert cluster.running == ["wf-a"]
    cluster.after(1)
    assert cluster.running == ["wf-a-r1"]
    assert cluster.names(AI_JOB.resource) == ["wf-a-r1"]
    cluster.after(61)
    assert cluster.phase == "Failed"
    assert cluster.steps["a"]["message"] == "timed out after 60 s"


def test_what_the_api_server_refuses_fails(workflow):
    cluster = workflow(
        {"name": "ok", "type": "approval"}, {"name": "a", "dependsOn": ["ok"], "retries": 2, "jobTemplate": JOB}
    )
    cluster.refuse = lambda resource, manifest: Refusal(
        resource, manifest["metadata"]["name"], "Invalid", "gpus is wrong"
    )
    cluster.answer("ok")
    assert cluster.phase == "Failed"
    assert cluster.steps["a"]["message"] == "the API server refused GryviaAIJob wf-a-r2: gpus is wrong"
    assert cluster.steps["a"]["retriesAttempted"] == 2


def test_no_more_run_at_a_time_than_the_setting_allows(workflow):
    cluster = workflow(*({"name": f"s{n}"} for n in range(5)), settings=WorkflowSettings(workflow_max_parallel_steps=2))
    done = []
    while cluster.running:
        assert len(cluster.running) <= 2
        done.append(cluster.running[-1])
        cluster.finish(cluster.running[-1])
    assert cluster.phase == "Succeeded"
    assert len(done) == 5


def test_items_run_side_by_side_and_their_outputs_are_lists(workflow):
    cluster = workflow(
        {"name": "each", "withItems": ["a", {"lr": 0.1}, 3], "script": script("{{item}}")},
        {"name": "use", "dependsOn": ["each"], "script": script("{{steps.each.outputs.acc}}")},
    )
    assert cluster.running == ["wf-each-i0", "wf-each-i1", "wf-each-i2"]
    assert [cluster.child(name)["spec"]["containers"][0]["args"] for name in cluster.running] == [
        ["a"],
        ['{"lr":0.1}'],
        ["3"],
    ]
    cluster.finish("wf-each-i2", {"acc": "0.3", "only": "x"})
    cluster.finish("wf-each-i0", {"acc": 0.1})
    cluster.finish("wf-each-i1", {"acc": 0.2})
    assert cluster.steps["each"]["outputs"] == {"acc": '["0.1", "0.2", "0.3"]', "only": '[null, null, "x"]'}
    assert cluster.child("wf-use")["spec"]["containers"][0]["args"] == ['["0.1", "0.2", "0.3"]']


@pytest.mark.parametrize(
    ("items", "parameters", "count"),
    [
        ("{{parameters.list}}", {"list": '["a", "b"]'}, 2),
        ("{{steps.first.outputs.list}}", {}, 3),
        ('["x", "{{parameters.more}}"]', {"more": "y"}, 2),
        (["{{parameters.more}}"], {"more": "y"}, 1),
    ],
)
def test_items_come_from_a_list_a_parameter_or_an_output(workflow, items, parameters, count):
    cluster = workflow(
        {"name": "first"},
        {"name": "each", "dependsOn": ["first"], "withItems": items, "script": script("{{item}}")},
        parameters=parameters,
    )
    cluster.finish("wf-first", {"list": "[1, 2, 3]"})
    assert len(cluster.running) == count


def test_an_empty_list_is_done_at_once(workflow):
    cluster = workflow(
        {"name": "each", "withItems": [], "script": script("{{item}}")}, {"name": "then", "dependsOn": ["each"]}
    )
    assert cluster.steps["each"]["message"] == "no items"
    assert cluster.phases == {"each": "Succeeded", "then": "Running"}


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ("{{parameters.none}}", "withItems: {{parameters.none}}: spec.parameters has no none"),
        ("{{parameters.text}}", 'withItems: "abc" is no JSON list'),
        ("{{parameters.map}}", 'withItems: "{"a": 1}" is JSON, but no list'),
        (list(range(401)), "withItems: 401 items are too many, a run may have 400"),
    ],
)
def test_what_is_no_list_fails_the_step(workflow, items, said):
    cluster = workflow(
        {"name": "each", "withItems": items, "script": script("{{item}}")},
        parameters={"text": "abc", "map": '{"a": 1}'},
    )
    assert cluster.phase == "Failed"
    assert said in cluster.steps["each"]["message"]


def test_a_failed_item_fails_the_step_when_all_have_ended_and_is_resumed_alone(workflow):
    cluster = workflow(
        {"name": "each", "withItems": ["a", "b", "c"], "retries": 1, "script": script("{{item}}")},
        {"name": "then", "dependsOn": ["each"]},
    )
    cluster.finish("wf-each-i1", fail="bad")
    assert cluster.running == ["wf-each-i0", "wf-each-i1-r1", "wf-each-i2"]
    cluster.finish("wf-each-i1-r1", fail="worse")
    assert cluster.phases["each"] == "Running"
    cluster.finish("wf-each-i0", {"n": "0"})
    cluster.finish("wf-each-i2", {"n": "2"})
    assert cluster.phase == "Failed"
    assert cluster.steps["each"]["message"].startswith("1 of 3 items failed; item 1: pod wf-each-i1-r1 ended")
    cluster.annotate("gryvia.io/retry-failed", "now")
    assert cluster.running == ["wf-each-i1-r2"]
    assert cluster.child("wf-each-i1-r2")["spec"]["containers"][0]["args"] == ["b"]
    cluster.finish("wf-each-i1-r2", {"n": "1"})
    assert cluster.steps["each"]["outputs"] == {"n": '["0", "1", "2"]'}
    cluster.finish("wf-then")
    assert cluster.phase == "Succeeded"


def test_resuming_runs_what_failed_and_what_was_skipped_for_it_and_the_end_again(workflow):
    cluster = workflow(
        {"name": "good"},
        {"name": "bad", "dependsOn": ["good"]},
        {"name": "after", "dependsOn": ["bad"], "condition": "steps.bad.status == 'Succeeded'"},
        {"name": "never", "dependsOn": ["good"], "condition": "steps.good.status == 'Failed'"},
        {"name": "rescue", "dependsOn": ["bad"], "condition": "steps.bad.status == 'Failed'"},
        {"name": "clean", "finally": True},
        annotations={"gryvia.io/retry-failed": "from the template"},
    )
    cluster.finish("wf-good", {"x": "1"})
    cluster.finish("wf-bad", fail="no")
    cluster.finish("wf-rescue")
    cluster.finish("wf-clean")
    assert cluster.phase == "Failed", "an annotation that was there from the start resumes nothing"
    ended = cluster.status["completionTime"]
    cluster.now = cluster.now.replace(hour=5)
    cluster.annotate("gryvia.io/retry-failed", "1")
    assert cluster.status["resumedBy"] == "1"
    assert cluster.phases == {
        "good": "Succeeded",
        "bad": "Running",
        "after": "Pending",
        "never": "Skipped",
        "rescue": "Succeeded",
        "clean": "Pending",
    }
    assert cluster.steps["good"]["outputs"] == {"x": "1"}
    cluster.finish("wf-bad-r1")
    cluster.finish("wf-after")
    cluster.finish("wf-clean-r1")
    assert cluster.phase == "Succeeded"
    assert cluster.status["completionTime"] > ended
    assert [len(cluster.happened(verb)) for verb in ("started", "failed", "succeeded")] == [1, 1, 1]
    before = cluster.writes.total()
    cluster.annotate("gryvia.io/retry-failed", "2")
    assert cluster.writes.total() == before, "nothing failed, so nothing is resumed"


def test_a_run_that_fails_twice_says_so_twice(workflow):
    cluster = workflow({"name": "a"})
    cluster.finish("wf-a", fail="no")
    cluster.annotate("gryvia.io/retry-failed", "line\nbreak")
    cluster.finish("wf-a-r1", fail="no")
    assert len(cluster.happened("failed")) == 2
    assert all(event.id.isprintable() for event in cluster.events)


def test_events_tell_every_step_and_attempt_once(workflow):
    cluster = workflow({"name": "a", "retries": 1}, {"name": "b", "dependsOn": ["a"]})
    cluster.finish("wf-a", fail="no")
    cluster.finish("wf-a-r1")
    cluster.finish("wf-b")
    told = [(event.step, event.phase, event.attempt) for event in cluster.happened("step")]
    assert told == [
        ("a", "Running", 0),
        ("a", "Pending", 0),
        ("a", "Running", 1),
        ("a", "Succeeded", 1),
        ("b", "Running", 0),
        ("b", "Succeeded", 0),
    ]
    assert [record.reason for record in cluster.records] == ["StepRetried", "Succeeded"]


def test_a_light_chain_costs_at_most_three_writes_a_step(workflow):
    entry = {"modelName": "m", "version": "1", "artifacts": {"pvcName": "p"}}
    steps = [{"name": "s0", "register": entry}]
    steps += [{"name": f"s{n}", "dependsOn": [f"s{n - 1}"], "register": entry} for n in range(1, 6)]
    cluster = workflow(*steps)
    assert cluster.phase == "Succeeded"
    assert cluster.names(MODEL_REGISTRY.resource) == [f"wf-s{n}" for n in range(6)]
    assert cluster.writes.total() <= 3 * 6


def test_a_step_taken_out_of_the_spec_is_stopped(workflow):
    cluster = workflow({"name": "a"}, {"name": "b"})
    cluster.edit(steps=[cluster.spec["steps"][1]])
    assert cluster.names(PODS) == ["wf-b"]
    assert list(cluster.phases) == ["b"]


def test_an_edit_that_makes_the_graph_invalid_stops_the_run_and_it_can_be_resumed(workflow):
    cluster = workflow({"name": "a"}, {"name": "b", "dependsOn": ["a"]})
    good = cluster.spec["steps"]
    cluster.edit(steps=[{**good[0], "dependsOn": ["b"]}, good[1]])
    assert cluster.phase == "Failed"
    assert cluster.condition("DAGValid")["reason"] == "Invalid"
    assert "the steps wait for each other" in cluster.message
    assert cluster.names(PODS) == []
    before = cluster.writes.total()
    cluster.after(3600)
    assert cluster.writes.total() == before
    cluster.edit(steps=good)
    cluster.annotate("gryvia.io/retry-failed", "1")
    assert cluster.running == ["wf-a-r1"]
    cluster.finish("wf-a-r1")
    cluster.finish("wf-b")
    assert cluster.phase == "Succeeded"


def test_an_invalid_workflow_makes_nothing_and_starts_once_it_is_mended(workflow):
    cluster = workflow({"name": "a", "dependsOn": ["zzz"]})
    assert cluster.phase == "Failed"
    assert 'there is no step "zzz"; the steps are a' in cluster.message
    assert cluster.writes == {"status": 1}
    cluster.edit(steps=[{**cluster.spec["steps"][0], "dependsOn": []}])
    assert cluster.running == ["wf-a"]


def test_a_scheduled_workflow_runs_again_and_again_and_keeps_ten_earlier_runs(workflow):
    cluster = workflow(
        {"name": "a"}, {"name": "b", "withItems": [1], "script": script("{{item}}")}, schedule="0 * * * *"
    )
    assert cluster.phase == "Scheduled"
    assert cluster.status["nextScheduleTime"] == "2026-01-01T01:00:00Z"
    assert cluster.status["run"] == 0
    for run in range(1, 15):
        cluster.after(3600)
        assert cluster.status["run"] == run
        assert cluster.phase == "Running"
        assert cluster.running == [f"wf-a-n{run}", f"wf-b-i0-n{run}"]
        cluster.finish(f"wf-a-n{run}", {"big": "x" * 2000})
        cluster.finish(f"wf-b-i0-n{run}", fail="no" if run == 14 else "")
        assert cluster.phase == "Scheduled"
    assert cluster.condition("WorkflowComplete")["reason"] == "Failed"
    runs = [name for name in cluster.names(CONFIG_MAPS) if "-run-" in name]
    assert sorted(runs) == sorted(f"wf-run-n{run}" for run in range(4, 14))
    assert "wf-a-n3" not in cluster.names(PODS)
    assert "wf-a-n4" in cluster.names(PODS)
    filed = json.loads(cluster.objects[CONFIG_MAPS, "wf-run-n13"]["data"]["run.json"])
    assert filed["run"] == 13
    assert [step["phase"] for step in filed["stepStatuses"]] == ["Succeeded", "Succeeded"]
    assert filed["stepStatuses"][0]["outputsIn"] in cluster.names(CONFIG_MAPS)
    cluster.annotate("gryvia.io/retry-failed", "1")
    assert cluster.running == ["wf-b-i0-n14-r1"]
    cluster.finish("wf-b-i0-n14-r1")
    assert cluster.phase == "Scheduled"
    assert cluster.condition("WorkflowComplete")["reason"] == "Succeeded"


def test_a_settled_schedule_costs_nothing_until_the_next_run(workflow):
    cluster = workflow({"name": "a"}, schedule="0 3 * * *")
    before = cluster.writes.total()
    for _ in range(5):
        cluster.after(600)
    assert cluster.writes.total() == before
    assert cluster.last.again_at is not None


def test_an_approval_of_one_run_does_not_answer_the_next(workflow):
    cluster = workflow({"name": "ok", "type": "approval"}, schedule="0 * * * *")
    cluster.answer("ok")
    cluster.after(3600)
    assert cluster.phase == "Running", "an answer from before the run is none"
    cluster.answer("ok")
    assert cluster.phase == "Scheduled"
    cluster.after(3600)
    assert cluster.phase == "Running"
    assert cluster.status["run"] == 2


def test_a_run_longer_than_its_interval_has_one_follow_up_whatever_restarts(workflow):
    """argoproj/argo-workflows#4392, #12625."""
    cluster = workflow({"name": "a"}, schedule="0 * * * *")
    cluster.after(3600)
    for _ in range(5):
        cluster.restart()
        cluster.after(2000)
        assert cluster.running == ["wf-a-n1"]
    cluster.finish("wf-a-n1")
    assert cluster.running == ["wf-a-n2"]
    cluster.finish("wf-a-n2")
    assert cluster.phase == "Scheduled"
    assert cluster.status["run"] == 2


def test_a_workflow_that_gets_a_schedule_after_its_end_waits_for_the_next_time(workflow):
    cluster = workflow({"name": "a"})
    cluster.finish("wf-a")
    cluster.after(7 * 3600 + 60)
    cluster.edit(schedule="0 * * * *")
    assert cluster.phase == "Scheduled"
    assert cluster.status["nextScheduleTime"] == "2026-01-01T08:00:00Z"
    cluster.after(3600)
    assert cluster.running == ["wf-a-n1"]
    cluster.finish("wf-a-n1")
    cluster.edit(schedule=None)
    assert cluster.phase == "Succeeded"


def test_a_condition_that_would_run_for_ever_is_given_up(workflow):
    numbers = "[" + ",".join("1" * 200) + "]"
    endless = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, true)))"
    cluster = workflow({"name": "a", "condition": endless})
    assert cluster.phase == "Failed"
    assert "Iteration budget exceeded" in cluster.steps["a"]["message"]


def test_a_long_message_of_a_failed_step_is_written_once(workflow):
    cluster = workflow({"name": "a", "jobTemplate": JOB}, {"name": "b"}, {"name": "c"}, schedule="0 * * * *")
    cluster.after(3600)
    cluster.finish("wf-a-n1", fail="x" * 1000)
    written = cluster.writes["status"]
    cluster.finish("wf-b-n1")
    cluster.finish("wf-c-n1")
    assert cluster.phase == "Scheduled"
    assert cluster.writes["status"] == written + 2
    cluster.after(60)
    assert cluster.writes["status"] == written + 2


def test_a_status_that_somebody_emptied_is_found_again_from_the_children(workflow):
    cluster = workflow({"name": "a"}, {"name": "b", "dependsOn": ["a"]})
    cluster.finish("wf-a", {"x": "1"})
    cluster.raw["status"] = {"phase": "Running"}
    cluster.restart()
    cluster.settle()
    assert cluster.phases == {"a": "Succeeded", "b": "Running"}
    assert cluster.steps["a"]["outputs"] == {"x": "1"}
    assert set(cluster.made.values()) == {1}


def test_after_an_outage_one_run_for_the_newest_time_makes_up_for_all(workflow):
    """argoproj/argo-workflows#9632, kubernetes/kubernetes#83642: 108 times missed in nine hours."""
    cluster = workflow({"name": "a"}, schedule="*/5 * * * *")
    cluster.restart()
    cluster.after(9 * 3600 + 60)
    assert cluster.phase == "Running"
    assert cluster.status["lastScheduleTime"] == "2026-01-01T09:00:00Z"
    assert cluster.status["missedRuns"] == 107
    assert cluster.status["run"] == 1
    cluster.finish("wf-a-n1")
    assert cluster.phase == "Scheduled"
    assert cluster.status["nextScheduleTime"] == "2026-01-01T09:05:00Z"


def test_with_catch_up_all_the_missed_runs_follow_each_other(workflow):
    cluster = workflow({"name": "a"}, schedule="0 * * * *", catchUp="all", catchUpLimit=3)
    cluster.after(9 * 3600 + 60)
    times = []
    for run in (1, 2, 3):
        assert cluster.running == [f"wf-a-n{run}"]
        times.append(cluster.status["lastScheduleTime"][11:13])
        cluster.finish(f"wf-a-n{run}")
    assert times == ["07", "08", "09"]
    assert cluster.phase == "Scheduled"
    assert cluster.status["missedRuns"] == 6


def test_a_suspended_schedule_starts_nothing_and_says_so(workflow):
    cluster = workflow({"name": "a"}, schedule="0 * * * *", suspend=True)
    cluster.after(7200)
    assert cluster.phase == "Scheduled"
    assert "suspended" in cluster.message
    cluster.edit(suspend=False)
    assert cluster.status["nextScheduleTime"] == "2026-01-01T03:00:00Z"


def test_a_running_run_can_be_told_to_retry_what_has_failed_so_far(workflow):
    cluster = workflow({"name": "a"}, {"name": "b"})
    cluster.finish("wf-a", fail="no")
    cluster.annotate("gryvia.io/retry-failed", "1")
    assert cluster.running == ["wf-a-r1", "wf-b"]


def test_outputs_whose_place_is_gone_are_missed_with_a_sentence(workflow):
    cluster = workflow(
        {"name": "a"},
        {"name": "ok", "type": "approval"},
        {"name": "b", "dependsOn": ["a", "ok"], "script": script("{{steps.a.outputs.x}}")},
    )
    cluster.finish("wf-a", {"x": "y" * 3000})
    del cluster.objects[CONFIG_MAPS, "wf-a-outputs"]
    cluster.answer("ok")
    assert cluster.steps["b"]["message"] == "the outputs of step a stood in ConfigMap wf-a-outputs, which is gone"


def test_outputs_that_are_seen_late_are_waited_for(workflow):
    cluster = workflow(
        {"name": "a"},
        {"name": "ok", "type": "approval"},
        {"name": "b", "dependsOn": ["a", "ok"], "script": script("{{steps.a.outputs.x}}")},
        {"name": "c", "dependsOn": ["a", "ok"], "condition": "size(steps.a.outputs.x) == 3000"},
    )
    cluster.finish("wf-a", {"x": "y" * 3000})
    cluster.unseen.add((CONFIG_MAPS, "wf-a-outputs"))
    cluster.restart()
    cluster.answer("ok")
    assert [cluster.phases[name] for name in "bc"] == ["Pending", "Pending"]
    cluster.unseen.clear()
    cluster.settle()
    assert cluster.running == ["wf-b", "wf-c"]


def test_outputs_that_cannot_be_kept_fail_the_attempt(workflow):
    cluster = workflow({"name": "a"})

    def refuse(resource, manifest):
        name = manifest["metadata"]["name"]
        return Refusal(resource, name, "NameCollision", f"{name} is taken") if resource == CONFIG_MAPS else None

    cluster.refuse = refuse
    cluster.finish("wf-a", {"x": "y" * 3000})
    assert cluster.phase == "Failed"
    assert (
        cluster.steps["a"]["message"] == "the outputs cannot be kept in ConfigMap wf-a-outputs: wf-a-outputs is taken"
    )


def test_a_step_that_becomes_another_type_while_it_runs_is_begun_anew(workflow):
    cluster = workflow({"name": "a", "jobTemplate": JOB}, {"name": "b"})
    cluster.edit(steps=[{"name": "a", "script": script()}, cluster.spec["steps"][1]])
    assert cluster.names(AI_JOB.resource) == []
    assert cluster.running == ["wf-a-r1", "wf-b"]


def test_a_loop_that_an_edit_takes_away_goes_on_with_what_runs_and_fails_what_would_begin(workflow):
    cluster = workflow({"name": "a", "withItems": [1, 2], "retries": 1, "script": script("{{item}}")})
    cluster.edit(steps=[{"name": "a", "retries": 1, "script": script("x")}])
    cluster.finish("wf-a-i0", {"x": "1"})
    cluster.finish("wf-a-i1", fail="no")
    assert cluster.phase == "Failed"
    assert [item["phase"] for item in cluster.steps["a"]["items"]] == ["Succeeded", "Failed"]
    assert cluster.steps["a"]["items"][1]["message"] == "withItems: there is no list any more"
