"""The life of a job as a user sees it, on the small cluster of conftest."""

from __future__ import annotations

import json

from gryvia_common.kube.resources import JOBS, PODS, PVCS, SERVICES


def run_to_running(c):
    c.settle()
    c.make_pods()
    c.settle()
    for pod in c.pods():
        c.start(pod)
    c.settle()
    return c.pods()[0]


def test_a_simple_job_goes_through_its_phases_and_costs_few_writes(cluster):
    """Pending costs three writes (Service, Job, status); the whole run four status writes."""
    c = cluster({})
    c.settle()
    assert c.phase == "Pending"
    assert c.writes == ["create Service", "create Job", "status"]
    c.make_pods()
    c.settle()
    assert c.phase == "Scheduling"
    pod = c.pods()[0]
    c.start(pod)
    c.settle()
    assert c.phase == "Running"
    assert c.status["replicasReady"] == 1
    assert c.status["nodesAllocated"] == ["node-1"]
    c.later(60)
    c.end(pod)
    c.settle()
    assert c.phases == ["Pending", "Scheduling", "Running", "Succeeded"]
    assert c.status["startTime"] == "2026-03-01T12:00:00Z"
    assert c.status["completionTime"] == "2026-03-01T12:01:00Z"
    assert c.condition("Scheduled")["reason"] == "CPUOnly"
    assert [event.type for event in c.events] == ["gryvia.job.started", "gryvia.job.succeeded"]
    assert c.records == ["Succeeded"]


def test_a_settled_job_writes_nothing_however_often_it_is_looked_at(cluster):
    c = cluster({"storage": "fast"})
    pod = run_to_running(c)
    before = len(c.writes)
    for _ in range(50):
        c.later(60)
        c.step()
        c.act()
    assert len(c.writes) == before
    c.end(pod)
    c.settle()
    before = len(c.writes)
    for _ in range(50):
        c.later(600)
        assert not c.step()
        assert not c.act()
    assert len(c.writes) == before


def test_a_failed_pod_is_retried_and_running_never_regresses(cluster):
    c = cluster({"retryLimit": 1})
    pod = run_to_running(c)
    c.end(pod, code=1)
    c.settle()
    assert c.phase == "Running"
    assert c.status["retries"] == 1
    assert "retry 1 of 1" in c.status["message"]
    c.make_pods()
    c.settle()
    assert c.phase == "Running"
    second = c.pods()[1]
    c.start(second)
    c.end(second, code=3, message="Traceback\nValueError: no such column: label")
    c.settle()
    assert c.phase == "Failed"
    assert "BackoffLimitExceeded" in c.status["message"]
    assert "exit code 3: ValueError: no such column: label" in c.status["message"]
    assert c.status["retries"] == 2
    assert c.children[JOBS], "the Job stays, for its logs"


def test_a_disruption_uses_up_no_retry(cluster):
    c = cluster({})
    pod = run_to_running(c)
    c.end(pod, code=137, disrupted=True)
    c.settle()
    assert "no retry is used" in c.status["message"]
    c.make_pods()
    c.settle()
    assert c.phase == "Running"
    assert c.status.get("retries", 0) == 0
    c.start(c.pods()[1])
    c.end(c.pods()[1])
    c.settle()
    assert c.phase == "Succeeded"


def test_out_of_memory_says_what_to_raise(cluster):
    c = cluster({})
    pod = run_to_running(c)
    c.end(pod, code=137, reason="OOMKilled")
    c.settle()
    assert "raise spec.resources.limits.memory" in c.status["message"]


def test_cancel_by_annotation_removes_the_workload_and_keeps_the_claim(cluster):
    c = cluster({"storage": "fast"})
    run_to_running(c)
    c.annotate(cancel="true")
    c.settle()
    assert c.phase == "Cancelled"
    assert c.status["completionTime"]
    assert not c.children[JOBS]
    assert not c.children[PODS]
    assert c.children[PVCS]
    assert c.events[-1].type == "gryvia.job.cancelled"
    assert c.status["gpusAllocated"] == 0


def test_cancel_by_the_cli_patches_the_phase(cluster):
    c = cluster({})
    run_to_running(c)
    c.patch(phase="Cancelled")
    c.settle()
    assert not c.children[JOBS]
    assert c.status["completionTime"]
    assert [e.type for e in c.events].count("gryvia.job.cancelled") == 1
    before = len(c.writes)
    c.settle()
    assert len(c.writes) == before


def test_a_message_about_a_state_that_is_over_does_not_explain_the_end(cluster):
    c = cluster({"suspend": True})
    c.settle()
    assert "suspended" in c.status["message"]
    c.patch(phase="Cancelled")
    c.settle()
    assert c.status["message"] == "cancelled by status.phase"
    told = cluster({"suspend": True})
    told.settle()
    told.patch(phase="Cancelled", message="stopped by experiment ab")
    told.settle()
    assert told.status["message"] == "stopped by experiment ab"


def test_cancelling_a_finished_job_changes_nothing(cluster):
    c = cluster({})
    pod = run_to_running(c)
    c.end(pod)
    c.settle()
    before, status = len(c.writes), dict(c.status)
    c.annotate(cancel="true")
    c.settle()
    assert c.status == status
    assert len(c.writes) == before
    assert c.children[JOBS]


def test_cancel_that_comes_as_the_job_ends_does_not_undo_the_end(cluster):
    c = cluster({})
    pod = run_to_running(c)
    c.end(pod)
    c.annotate(cancel="true")
    c.settle()
    assert c.phase == "Succeeded"


def test_a_job_queued_by_a_quota_makes_nothing_until_it_is_let_go(cluster):
    c = cluster({"storage": "fast"})
    c.patch(phase="Queued", message="quota team-a: 8 of 8 GPUs used")
    c.settle()
    assert not any(c.children.values())
    assert c.status["message"] == "quota team-a: 8 of 8 GPUs used"
    c.patch(phase="Pending", message=None)
    c.settle()
    assert c.children[JOBS]


def test_a_quota_that_comes_late_takes_the_workload_back(cluster):
    c = cluster({})
    c.settle()
    c.patch(phase="Queued", message="quota team-a is full")
    c.settle()
    assert not c.children[JOBS]
    assert c.phase == "Queued"


def test_rejected_removes_workload_service_and_claim(cluster):
    c = cluster({"storage": "fast"})
    c.settle()
    c.patch(phase="Rejected", message="no budget left")
    c.settle()
    assert not any(c.children.values())
    assert c.status["message"] == "no budget left"
    assert c.events[-1].type == "gryvia.job.rejected"


def test_a_quota_also_holds_a_job_that_is_meant_for_kueue(cluster):
    c = cluster({}, labels={"kueue.x-k8s.io/queue-name": "q"})
    c.patch(phase="Queued", message="quota team-a is full")
    c.settle()
    assert not any(c.children.values())
    c.patch(phase="Pending", message=None)
    c.settle()
    assert c.phase == "Queued"
    assert c.children[JOBS]


def test_pods_of_a_removed_workload_do_not_count_for_the_next(cluster):
    """Garbage collection takes its time: the preempted job's pod still runs when the job is let go again."""
    c = cluster({})
    old = run_to_running(c)
    c.patch(phase="Preempted")
    c.settle()
    c.children[PODS][old["metadata"]["name"]] = old
    c.patch(phase="Pending")
    c.settle()
    assert c.phase == "Pending"
    assert c.status["replicasReady"] == 0


def test_a_pod_that_is_being_deleted_is_not_ready(cluster):
    c = cluster({"distributed": {"enabled": True, "nodes": 2}})
    run_to_running(c)
    assert c.status["replicasReady"] == 2
    c.pods()[0]["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    c.settle()
    assert c.status["replicasReady"] == 1
    assert c.condition("PodsReady")["message"] == "1 of 2 pods are ready"


def test_nothing_is_made_again_for_a_job_that_has_ended(cluster):
    c = cluster({})
    pod = run_to_running(c)
    c.remove(SERVICES, "train-headless")
    c.end(pod)
    c.step()
    c.act()
    c.children[SERVICES].clear()
    before = len(c.writes)
    c.settle()
    assert c.phase == "Succeeded"
    assert c.writes[before:] == ["status"]


def test_preempted_is_parked_and_can_run_again(cluster):
    c = cluster({"storage": "fast", "retryLimit": 1})
    c.end(run_to_running(c), code=1)
    c.settle()
    c.patch(phase="Preempted", message="gave way to job big")
    c.settle()
    assert not c.children[JOBS]
    assert c.children[PVCS]
    assert c.status["completionTime"]
    c.patch(phase="Pending", message=None)
    pod = run_to_running(c)
    assert c.phase == "Running"
    assert "completionTime" not in c.status
    assert c.status["retries"] == 1
    c.end(pod)
    c.settle()
    assert c.phase == "Succeeded"


def test_what_other_controllers_wrote_into_the_status_stays(cluster):
    c = cluster({})
    condition = {
        "type": "Rejected",
        "status": "False",
        "reason": "Fits",
        "message": "",
        "lastTransitionTime": "2026-03-01T00:00:00Z",
    }
    explanation = [{"node": "n1", "baseScore": 1, "fabricPenalty": 0, "finalScore": 1}]
    c.patch(conditions=[condition], placementExplanation=explanation)
    run_to_running(c)
    assert c.condition("Rejected") == condition
    assert c.status["placementExplanation"] == explanation


def test_kueue_holds_the_suspended_job_until_it_admits_it(cluster):
    c = cluster({}, labels={"kueue.x-k8s.io/queue-name": "gpu-queue"})
    c.settle()
    assert c.phase == "Queued"
    assert c.workload["spec"]["suspend"] is True
    assert c.workload["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpu-queue"
    assert c.condition("KueueAdmitted")["status"] == "False"
    assert len(c.writes) == 3
    c.workload["spec"]["suspend"] = False
    c.settle()
    assert c.workload["spec"]["suspend"] is False, "suspend is Kueue's"
    assert c.condition("KueueAdmitted")["status"] == "True"
    pod = run_to_running(c)
    c.end(pod)
    c.settle()
    assert c.phase == "Succeeded"


def test_a_queue_label_that_comes_late_does_not_take_the_workload_away(cluster):
    """The Job was made without the label, so Kueue has no say in it; Queued would be taken for the word of a quota."""
    c = cluster({"suspend": True})
    c.settle()
    c.job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    c.settle()
    assert c.phase == "Pending"
    assert c.children[JOBS]
    c.edit(suspend=False)
    c.settle()
    assert c.workload["spec"]["suspend"] is False


def test_a_quota_holds_a_preempted_job_that_kueue_had_admitted(cluster):
    c = cluster({}, labels={"kueue.x-k8s.io/queue-name": "q"})
    c.settle()
    c.workload["spec"]["suspend"] = False
    run_to_running(c)
    c.patch(phase="Preempted")
    c.settle()
    c.patch(phase="Queued", message="quota team-a is full")
    c.settle()
    assert not c.children[JOBS]
    assert c.status["message"] == "quota team-a is full"
    c.patch(phase="Pending", message=None)
    c.settle()
    assert c.children[JOBS]
    assert c.condition("KueueAdmitted")["status"] == "False"


def test_queue_name_needs_the_integration(cluster):
    off, on = cluster({"queueName": "q"}), cluster({"queueName": "q"}, kueue=True)
    off.settle()
    on.settle()
    assert off.workload["spec"]["suspend"] is False
    assert "spec.queueName" in off.condition("FieldsIgnored")["message"]
    assert on.phase == "Queued"
    assert on.workload["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q"


def test_suspend_is_the_only_field_that_is_synced(cluster):
    c = cluster({"suspend": True})
    c.settle()
    assert c.phase == "Pending"
    assert "spec.suspend" in c.status["message"]
    c.edit(suspend=False)
    c.settle()
    assert not c.condition("SpecApplied")
    c.edit(image="other:2")
    c.settle()
    assert c.workload["spec"]["suspend"] is False
    assert c.workload["spec"]["template"]["spec"]["containers"][0]["image"] == "python:3.11-slim"
    assert c.condition("SpecApplied")["reason"] == "TemplateFrozen"
    pod = run_to_running(c)
    c.edit(suspend=True)
    c.settle()
    assert c.workload["spec"]["suspend"] is True
    assert c.phase == "Running", "Running never regresses"
    c.end(pod)
    c.settle()
    assert c.phase == "Succeeded"


def test_a_job_without_a_fitting_node_is_pending_and_says_why(cluster):
    c = cluster({"gpus": 2, "gpuType": "H100"})
    c.settle()
    c.make_pods()
    pod = c.pods()[0]
    pod["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}
    ]
    c.settle()
    assert c.phase == "Pending"
    assert "0/3 nodes are available" in c.status["message"]
    assert c.condition("Scheduled")["reason"] == "Unschedulable"
    c.start(pod)
    c.settle()
    assert c.phase == "Running"
    assert c.status["gpusAllocated"] == 2
    assert "message" not in c.status


def test_an_image_that_cannot_be_pulled_is_named_once(cluster):
    """The kubelet alternates between ErrImagePull and ImagePullBackOff; that is one state, written once."""
    c = cluster({"image": "registry.test/nope:1"})
    c.settle()
    c.make_pods()
    pod = c.pods()[0]
    errors = {"ErrImagePull": "manifest unknown", "ImagePullBackOff": "Back-off pulling image"}
    counts = []
    for reason in ("ErrImagePull", "ImagePullBackOff") * 3:
        waiting = {"waiting": {"reason": reason, "message": errors[reason]}}
        pod["status"]["containerStatuses"] = [{"name": "main", "image": "registry.test/nope:1", "state": waiting}]
        c.settle()
        counts.append(len(c.writes))
    assert len(set(counts)) == 1
    assert "image registry.test/nope:1 cannot be pulled: manifest unknown" in c.status["message"]
    assert c.phase == "Scheduling"
    assert c.condition("PodsReady")["reason"] == "ImagePullBackOff"
    assert c.records == ["ImagePullBackOff"]


def test_a_name_taken_by_somebody_else_fails_the_job_and_touches_nothing(cluster):
    c = cluster({})
    stranger = {"metadata": {"name": "train", "namespace": "team-a", "uid": "uid-stranger"}, "spec": {"suspend": False}}
    c.children[JOBS]["train"] = stranger
    c.settle()
    assert c.phase == "Failed"
    assert "NameCollision" in c.status["message"]
    assert c.children[JOBS]["train"] == stranger


def test_a_manifest_the_api_server_refuses_fails_the_job_with_its_words(cluster):
    from gryvia_common.runtime.world import Refusal

    c = cluster({})
    c.refuse = lambda resource, manifest: (
        Refusal(resource, manifest["metadata"]["name"], "Invalid", "spec.template.spec.volumes[0]: no source")
        if resource == JOBS
        else None
    )
    c.settle()
    assert c.phase == "Failed"
    assert "volumes[0]: no source" in c.status["message"]


def test_a_full_resource_quota_is_waited_for(cluster):
    from gryvia_common.runtime.world import Refusal

    c = cluster({})
    refusal = Refusal(JOBS, "train", "Forbidden", "exceeded quota: count/jobs.batch")
    c.refuse = lambda resource, manifest: refusal if resource == JOBS else None
    c.settle()
    assert c.phase == "Pending"
    assert "exceeded quota" in c.status["message"]
    assert c.plan().again_at is not None
    c.refuse = lambda resource, manifest: None
    c.refusals.clear()
    c.settle()
    assert c.children[JOBS]
    assert "message" not in c.status


def test_a_workload_deleted_by_hand_is_made_again(cluster):
    c = cluster({})
    run_to_running(c)
    c.remove(JOBS, "train")
    c.settle()
    assert c.children[JOBS]
    assert c.phase == "Running"


def test_an_edit_that_is_invalid_does_not_stop_a_job_under_way(cluster):
    c = cluster({})
    pod = run_to_running(c)
    c.edit(timeout="soon")
    c.settle()
    assert c.phase == "Running"
    c.edit(gpus=-1)
    c.settle()
    assert c.phase == "Running"
    assert "spec.gpus" in c.condition("SpecApplied")["message"]
    c.edit(gpus=0)
    c.end(pod)
    c.settle()
    assert c.phase == "Succeeded"


def test_a_spec_that_does_not_parse_fails_the_job_once_also_when_it_is_mended(cluster):
    c = cluster({"gpus": "two"})
    c.settle()
    assert c.phase == "Failed"
    assert "spec.gpus" in c.status["message"]
    c.edit(gpus=2)
    c.settle()
    assert c.phase == "Failed"
    assert [event.type for event in c.events] == ["gryvia.job.failed"]
    assert c.records == ["Failed"]


def test_a_job_being_deleted_is_left_to_the_garbage_collector(cluster):
    c = cluster({"storage": "fast"}, deletionTimestamp="2026-03-01T12:00:00Z")
    c.settle()
    assert not any(c.children.values())
    assert not c.writes


def test_a_statefulset_runs_for_ever_and_counts_restarts(cluster):
    c = cluster({"type": "inference"})
    pod = run_to_running(c)
    assert c.workload["kind"] == "StatefulSet"
    assert c.workload["metadata"]["name"] == "train-training"
    assert c.phase == "Running"
    pod["status"]["containerStatuses"][0]["restartCount"] = 2
    c.settle()
    assert c.status["retries"] == 2
    assert c.phase == "Running"


def test_type_is_never_migrated_in_place(cluster):
    c = cluster({})
    run_to_running(c)
    c.edit(type="inference")
    c.settle()
    assert c.workload["kind"] == "Job"
    assert c.condition("SpecApplied")["status"] == "False"


def test_children_carry_owner_and_labels(cluster):
    c = cluster({"storage": "fast"}, labels={"gryvia.io/tuner": "study", "gryvia.io/component": "trial", "team": "x"})
    c.settle()
    c.make_pods()
    for objects in c.children.values():
        for obj in objects.values():
            labels = obj["metadata"]["labels"]
            assert labels["gryvia.io/job"] == "train"
            assert labels["gryvia.io/type"] == "training"
            assert labels["gryvia.io/tuner"] == "study"
            assert labels["gryvia.io/component"] == "trial"
            assert "team" not in labels
            assert obj["metadata"]["annotations"]["gryvia.io/owner"] == "gryviaaijobs/team-a/train/uid-job"
    assert set(c.children[SERVICES]) == {"train-headless"}
    assert set(c.children[PVCS]) == {"train-data"}
    json.dumps(c.workload)
