"""What each type of step makes, and what its end means."""

from __future__ import annotations

import json

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.resources import PODS

JOB = {"type": "training", "gpus": 0, "image": "python:3.11"}
ENTRY = {"modelName": "digits", "version": "1", "artifacts": {"pvcName": "models"}}


def test_a_chain_runs_in_order_with_one_create_and_one_status_write_a_step(workflow):
    cluster = workflow({"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b"]})
    for name in ("wf-a", "wf-b", "wf-c"):
        assert cluster.running == [name]
        cluster.finish(name)
    assert cluster.phase == "Succeeded"
    assert cluster.status["stepsTotal"] == cluster.status["stepsCompleted"] == 3
    assert cluster.writes == {"pods": 3, "status": 4}
    assert cluster.condition("WorkflowComplete")["reason"] == "Succeeded"
    assert cluster.condition("DAGValid")["reason"] == "Valid"
    assert cluster.condition("StepsRunning")["status"] == "False"


def test_a_finished_workflow_rests(workflow):
    cluster = workflow({"name": "a"})
    cluster.finish("wf-a")
    before = cluster.writes.total()
    cluster.after(86400)
    assert cluster.writes.total() == before
    cluster.edit(parameters={"x": "1"})
    # That it would take a request to run this is said once.
    assert cluster.writes.total() == before + 1


def test_a_script_pod_is_locked_down_as_the_contract_says(workflow):
    cluster = workflow({"name": "a", "timeoutSeconds": 60})
    spec = cluster.child("wf-a")["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["activeDeadlineSeconds"] == 60
    assert spec["restartPolicy"] == "Never"
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65534,
        "runAsGroup": 65534,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = spec["containers"][0]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert container["resources"] == {
        "requests": {"cpu": "100m", "memory": "128Mi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    }
    labels = cluster.child("wf-a")["metadata"]["labels"]
    assert labels["gryvia.io/workflow"] == "wf"
    assert labels["gryvia.io/step"] == "a"
    assert labels["gryvia.io/component"] == "workflow-step"
    assert labels["gryvia.io/run"] == "0"


def test_a_job_step_gets_parameters_and_its_own_names_as_variables(workflow):
    template = {**JOB, "env": [{"name": "A", "value": "{{parameters.EPOCHS}}"}], "args": ["{{workflow.name}}"]}
    cluster = workflow({"name": "train", "jobTemplate": template}, parameters={"EPOCHS": "3"})
    job = cluster.objects[AI_JOB.resource, "wf-train"]
    env = {one["name"]: one["value"] for one in job["spec"]["env"]}
    assert env == {"A": "3", "EPOCHS": "3", "WORKFLOW_NAME": "wf", "WORKFLOW_STEP": "train"}
    assert job["spec"]["args"] == ["wf"]


def test_outputs_of_a_job_come_from_the_pod_of_the_lowest_index_and_annotations_win(workflow):
    cluster = workflow({"name": "train", "jobTemplate": JOB})
    cluster.job_pod("wf-train", {"acc": 0.5, "who": "one"}, index=1)
    cluster.job_pod("wf-train", {"acc": 0.93, "ok": True, "who": "zero", "n": 3}, index=0)
    cluster.job("wf-train", "Succeeded", {"gryvia.io/output-who": "note"})
    cluster.settle()
    assert cluster.steps["train"]["outputs"] == {"who": "note", "acc": "0.93", "ok": "true", "n": "3"}


def test_a_job_that_ended_before_its_pod_is_seen_is_waited_for(workflow):
    cluster = workflow({"name": "train", "jobTemplate": JOB})
    cluster.job("wf-train", "Succeeded")
    status = cluster.objects[AI_JOB.resource, "wf-train"]["status"]
    status["completionTime"] = "2026-01-01T00:00:00Z"
    cluster.settle()
    assert cluster.phase == "Running"
    assert cluster.last.again_at is not None
    cluster.job_pod("wf-train", {"acc": "0.9"})
    cluster.settle()
    assert cluster.steps["train"]["outputs"] == {"acc": "0.9"}


def test_what_is_no_output_is_left_out_and_named(workflow):
    cluster = workflow({"name": "a"})
    text = '{"good": "1", "nan": NaN, "list": [1], "none": null, "bad key": "x", "big": 1e999}'
    cluster.finish("wf-a", text)
    step = cluster.steps["a"]
    assert step["phase"] == "Succeeded"
    assert step["outputs"] == {"good": "1"}
    for said in ("nan: nan is not a finite number", "list: [1] is neither text nor number", "bad key"):
        assert said in step["message"]


def test_a_termination_message_that_was_cut_fails_the_attempt(workflow):
    cluster = workflow({"name": "a"})
    cluster.finish("wf-a", json.dumps({"x": "y" * 5000}))
    assert cluster.phase == "Failed"
    assert "cut at 4096 bytes" in cluster.steps["a"]["message"]


def test_every_end_of_a_job_ends_its_step(workflow):
    for phase, after in (
        ("Failed", "Failed"),
        ("Rejected", "Failed"),
        ("Cancelled", "Failed"),
        ("Succeeded", "Succeeded"),
    ):
        cluster = workflow({"name": "a", "jobTemplate": JOB})
        cluster.job("wf-a", phase, message="because")
        cluster.after(10)
        assert cluster.phase == after
        if after == "Failed":
            assert "because" in cluster.steps["a"]["message"]


def test_a_cancelled_job_is_not_tried_again(workflow):
    cluster = workflow({"name": "a", "jobTemplate": JOB, "retries": 3})
    cluster.job("wf-a", "Cancelled")
    cluster.settle()
    assert cluster.phase == "Failed"


def test_a_register_step_makes_an_entry_that_belongs_to_nobody(workflow):
    cluster = workflow(
        {"name": "reg", "register": {**ENTRY, "metadata": {"acc": "{{parameters.ACC}}"}, "autoServe": True}},
        parameters={"ACC": "0.9"},
        annotations={"gryvia.io/source-model": "org/base", "gryvia.io/source-revision": "abc"},
    )
    assert cluster.phase == "Succeeded"
    entry = cluster.objects[MODEL_REGISTRY.resource, "wf-reg"]
    assert "ownerReferences" not in entry["metadata"]
    assert entry["metadata"]["labels"]["gryvia.io/component"] == "workflow-register"
    assert entry["spec"]["metadata"] == {"base_model": "org/base", "base_revision": "abc", "acc": "0.9"}
    assert entry["spec"]["source"] == {"workflowRef": "wf"}
    assert entry["spec"]["stage"] == "staging"
    assert entry["spec"]["autoServe"] is True
    assert cluster.steps["reg"]["outputs"] == {"name": "wf-reg"}
    assert cluster.steps["reg"]["jobName"] == "wf-reg"
    assert cluster.writes.total() <= 3


def test_an_entry_of_somebody_else_is_not_taken_for_ours(workflow):
    cluster = workflow({"name": "wait", "type": "approval"}, {"name": "reg", "dependsOn": ["wait"], "register": ENTRY})
    cluster.objects[MODEL_REGISTRY.resource, "wf-reg"] = {
        "metadata": {"name": "wf-reg", "namespace": "ns", "uid": "x", "labels": {"gryvia.io/run": "0"}},
        "spec": {**ENTRY, "source": {"workflowRef": "other"}},
    }
    cluster.answer("wait")
    assert cluster.phase == "Failed"
    assert "exists already" in cluster.steps["reg"]["message"]


def test_a_registry_step_merges_metadata_of_an_entry(workflow):
    step = {
        "name": "note",
        "registry": {"entry": "e", "action": "updateMetadata", "metadata": {"seen": "{{workflow.run}}"}},
    }
    cluster = workflow({"name": "wait", "type": "approval"}, {**step, "dependsOn": ["wait"]})
    cluster.objects[MODEL_REGISTRY.resource, "e"] = {
        "metadata": {"name": "e", "namespace": "ns", "uid": "x"},
        "spec": {**ENTRY, "metadata": {"acc": "0.9"}},
    }
    cluster.answer("wait")
    assert cluster.phase == "Succeeded"
    assert cluster.objects[MODEL_REGISTRY.resource, "e"]["spec"]["metadata"] == {"acc": "0.9", "seen": "0"}
    assert cluster.steps["note"]["outputs"] == {"name": "e"}


def test_a_rollback_is_asked_for_once_though_the_service_dies_after_the_request(workflow):
    step = {"name": "back", "registry": {"serviceName": "chat", "action": "rollback"}, "dependsOn": ["wait"]}
    cluster = workflow({"name": "wait", "type": "approval"}, step)
    cluster.objects[INFERENCE_SERVICE.resource, "chat"] = {
        "metadata": {"name": "chat", "namespace": "ns", "uid": "s"},
        "spec": {"modelRef": "e"},
    }
    cluster.objects[MODEL_REGISTRY.resource, "e"] = {
        "metadata": {"name": "e", "namespace": "ns", "uid": "x"},
        "spec": ENTRY,
    }
    cluster.raw["metadata"]["annotations"]["gryvia.io/approval-wait"] = '{"decision": "Approved", "by": "ann"}'
    entry = (MODEL_REGISTRY.resource, "e")
    while "gryvia.io/rollback-requested" not in cluster.objects[entry]["metadata"].get("annotations", {}):
        cluster.step()
    before = dict(cluster.status)
    # The registry acts and takes the request away; the status of the pass that asked was lost.
    del cluster.objects[entry]["metadata"]["annotations"]["gryvia.io/rollback-requested"]
    cluster.raw["status"] = json.loads(json.dumps(before))
    for step_status in cluster.raw["status"]["stepStatuses"]:
        if step_status["name"] == "back":
            step_status.update(phase="Running", jobName="chat")
            step_status.pop("completionTime", None)
            step_status.pop("outputs", None)
    cluster.raw["status"]["phase"] = "Running"
    cluster.restart()
    cluster.settle()
    assert "gryvia.io/rollback-requested" not in cluster.objects[entry]["metadata"]["annotations"]
    assert cluster.steps["back"]["outputs"] == {"name": "e"}


def test_a_registry_step_without_its_target_fails(workflow):
    for block, said in (
        ({"entry": "nope", "action": "rollback"}, 'no GryviaModelRegistry "nope"'),
        ({"serviceName": "nope", "action": "rollback"}, 'no GryviaInferenceService "nope"'),
    ):
        cluster = workflow({"name": "a", "registry": block})
        assert cluster.phase == "Failed"
        assert said in cluster.steps["a"]["message"]


def test_an_approval_waits_for_the_right_person_and_records_who_and_when(workflow):
    cluster = workflow(
        {"name": "ok", "type": "approval", "approvers": ["ann", "bob"]}, {"name": "go", "dependsOn": ["ok"]}
    )
    assert cluster.phases == {"ok": "Running", "go": "Pending"}
    assert "ann or bob" in cluster.steps["ok"]["message"]
    cluster.answer("ok", by="eve")
    assert '"eve" is not one of them' in cluster.steps["ok"]["message"]
    cluster.annotate("gryvia.io/approval-ok", "yes")
    assert "is not understood" in cluster.steps["ok"]["message"]
    cluster.answer("ok", decision="Maybe", by="bob")
    assert "write Approved or Rejected" in cluster.steps["ok"]["message"]
    cluster.answer("ok", by="bob", comment="fine")
    assert cluster.phases == {"ok": "Succeeded", "go": "Running"}
    assert cluster.steps["ok"]["approval"] == {
        "decision": "Approved",
        "by": "bob",
        "at": "2026-01-01T00:00:00Z",
        "comment": "fine",
    }
    assert "gryvia.io/approval-ok" not in cluster.raw["metadata"]["annotations"]


def test_a_rejected_approval_fails_and_a_resumed_run_asks_again(workflow):
    cluster = workflow({"name": "ok", "type": "approval"}, {"name": "go", "dependsOn": ["ok"]})
    cluster.answer("ok", decision="Rejected", by="ann")
    assert cluster.phase == "Failed"
    assert cluster.phases == {"ok": "Failed", "go": "Skipped"}
    cluster.annotate("gryvia.io/retry-failed", "1")
    assert cluster.phases == {"ok": "Running", "go": "Pending"}
    cluster.answer("ok")
    cluster.finish("wf-go")
    assert cluster.phase == "Succeeded"


def test_an_approval_nobody_gives_in_time_fails(workflow):
    cluster = workflow({"name": "ok", "type": "approval", "timeoutSeconds": 60})
    cluster.after(30)
    assert cluster.phase == "Running"
    cluster.after(31)
    assert cluster.phase == "Failed"
    assert "nobody answered within 60 s" in cluster.steps["ok"]["message"]


def test_approvals_take_no_slot(workflow):
    steps = [{"name": f"ok{n}", "type": "approval"} for n in range(15)]
    cluster = workflow(*steps, {"name": "work"})
    assert cluster.running == ["wf-work"]
    assert all(phase == "Running" for phase in cluster.phases.values())


def test_pods_that_fail_say_why(workflow):
    cluster = workflow({"name": "a"})
    cluster.finish("wf-a", fail="Traceback\nValueError: no data")
    assert cluster.steps["a"]["message"] == "pod wf-a ended with exit code 1: ValueError: no data"
    assert "step a: pod wf-a ended" in cluster.message
    assert cluster.names(PODS) == ["wf-a"]


def test_outputs_of_a_pod_that_fails_are_not_taken_for_its_reason(workflow):
    cluster = workflow({"name": "a"})
    cluster.pod("wf-a", fail='{"acc": "0.9"}')
    cluster.settle()
    assert cluster.steps["a"]["message"] == "pod wf-a ended with exit code 1"
    assert "outputs" not in cluster.steps["a"]
