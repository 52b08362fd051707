"""What is read from pods, workloads and into pod templates, as any service does it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.kube.children import NAME_LIMIT, child_name, partial_manifest
from gryvia_common.kube.pods import Pod, last_words, lead, newest, pods_of, result, trouble
from gryvia_common.kube.resources import JOBS, NODES, STATEFUL_SETS
from gryvia_common.kube.templates import gpu_node, gpu_resources, shared_memory, spec_hash, without_repeats
from gryvia_common.kube.workloads import Workload

INDEX = "batch.kubernetes.io/job-completion-index"


def pod(name: str = "p", *, phase: str = "Running", created: int = 0, conditions: Any = (), **state: Any) -> Pod:
    """`state`: of the container `work`."""
    container = {"name": "work", "image": "im:1", "restartCount": 0, "state": state}
    return Pod(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": f"2026-03-01T12:00:{created:02}Z"},
            "spec": {"nodeName": "n1", "containers": [{"name": "work", "image": "im:1"}]},
            "status": {
                "phase": phase,
                "conditions": [{"type": t, "status": s, **more} for t, s, more in conditions],
                "containerStatuses": [{"name": "sidecar", "state": {"waiting": {"reason": "X"}}}, container],
            },
        },
        "work",
    )


def waiting(reason: str, message: str = "", name: str = "p") -> Pod:
    return pod(name, phase="Pending", waiting={"reason": reason, "message": message})


def indexed(index: int, **more: Any) -> Pod:
    made = pod(f"p-{index}-{more.get('created', 0)}", **more)
    made.raw["metadata"]["labels"] = {INDEX: str(index)}
    return made


def test_a_pod_is_ready_only_while_it_runs_and_is_not_being_deleted():
    ready = [("Ready", "True", {})]
    assert pod(conditions=ready).ready
    assert not pod(conditions=[("Ready", "False", {})]).ready
    assert not pod(phase="Succeeded", conditions=ready).ready
    leaving = pod(conditions=ready)
    leaving.raw["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    assert not leaving.ready


def test_a_bare_pod_answers_every_question():
    bare = Pod({"metadata": {"name": "p"}}, "work")
    assert (bare.phase, bare.index, bare.ready, bare.ended, bare.node, bare.gpus) == ("Pending", 0, False, False, "", 0)
    assert (bare.waiting, bare.terminated, bare.started_at, bare.image, bare.restarts) == ({}, {}, None, "", 0)
    assert (bare.termination_message, bare.unschedulable, bare.disrupted) == ("", "", False)
    assert trouble([bare]) == ("", "")
    assert last_words(bare, {}) == ""


@pytest.mark.parametrize(
    ("meta", "index"),
    [
        ({"labels": {INDEX: "3"}}, 3),
        ({"annotations": {INDEX: "4"}}, 4),
        ({"labels": {"apps.kubernetes.io/pod-index": "5"}}, 5),
        ({"name": "web-6"}, 6),
        ({"name": "web"}, 0),
    ],
)
def test_the_index_is_found_where_job_and_statefulset_leave_it(meta, index):
    assert Pod({"metadata": {"name": "p", **meta}}, "work").index == index


def test_an_ended_pod_takes_no_room_on_its_node():
    assert pod().node == "n1"
    assert pod(phase="Failed").node == ""


def test_a_container_that_could_not_be_started_never_started():
    assert pod(terminated={"startedAt": "1970-01-01T00:00:00Z"}).started_at is None
    began = pod(running={"startedAt": "2026-03-01T12:00:05Z"}).started_at
    assert began == datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)


def test_a_restart_in_place_and_a_new_pod_are_other_attempts():
    first, again, other = pod(), pod(), pod("q")
    again.raw["status"]["containerStatuses"][1]["restartCount"] = 1
    assert len({first.attempt, again.attempt, other.attempt}) == 3


def test_gpus_are_summed_over_the_containers():
    made = pod()
    limits = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    made.raw["spec"]["containers"] = [limits, {"name": "sidecar"}, limits]
    assert made.gpus == 4


def test_only_pods_of_this_very_workload_count_in_the_order_of_their_index():
    def owned(index: int, uid: str) -> dict[str, Any]:
        refs = [{"controller": True, "uid": uid}]
        return {"metadata": {"name": f"p{index}", "labels": {INDEX: str(index)}, "ownerReferences": refs}}

    raws = [owned(10, "new"), owned(2, "new"), owned(1, "old"), {"metadata": {"name": "stranger"}}]
    assert [one.index for one in pods_of({"metadata": {"uid": "new"}}, raws, "work")] == [2, 10]


def test_the_newest_attempt_of_the_lowest_index_leads():
    pods = [indexed(1, created=9), indexed(0, created=1), indexed(0, created=5), indexed(2)]
    assert lead(pods) is pods[2]
    assert newest(pods) is pods[0]
    assert lead([]) is None


def test_a_pod_without_a_node_is_named_before_one_that_is_stuck():
    unschedulable = pod("q", phase="Pending", conditions=[("PodScheduled", "False", {"message": "0/3 nodes"})])
    assert trouble([waiting("CrashLoopBackOff"), unschedulable]) == ("Unschedulable", "pod q fits no node: 0/3 nodes")
    assert trouble([waiting("ContainerCreating")]) == ("", "")


def test_a_pull_error_is_one_sentence_however_the_kubelet_words_it():
    reason, said = trouble([waiting("ErrImagePull", "manifest unknown")])
    assert (reason, said) == ("ImagePullBackOff", "pod p: image im:1 cannot be pulled: manifest unknown")
    assert trouble([waiting("ImagePullBackOff", "Back-off")], before=said) == (reason, said)
    assert trouble([waiting("ImagePullBackOff", "Back-off")], before="pod q: other")[1] == (
        "pod p: image im:1 cannot be pulled"
    )


def test_a_crash_loop_does_not_say_its_growing_back_off_but_a_bad_config_says_why():
    assert trouble([waiting("CrashLoopBackOff", "back-off 5m0s")])[1] == "pod p cannot start: CrashLoopBackOff"
    assert trouble([waiting("CreateContainerConfigError", 'secret "x" not found')])[1] == (
        'pod p cannot start: CreateContainerConfigError: secret "x" not found'
    )
    assert len(trouble([waiting("CreateContainerError", "m" * 9999)])[1]) < 400


def test_last_words_are_the_hint_for_the_reason_or_the_last_line():
    failed = pod(phase="Failed", terminated={"exitCode": 3, "reason": "Error", "message": "Traceback\n  boom \n\n"})
    assert last_words(failed, {"OOMKilled": "raise memory"}) == "pod p ended with exit code 3: boom"
    killed = pod(phase="Failed", terminated={"exitCode": 137, "reason": "OOMKilled", "message": "x"})
    assert last_words(killed, {"OOMKilled": "raise memory"}) == "pod p ended with exit code 137: raise memory"
    evicted = pod(phase="Failed")
    evicted.raw["status"]["reason"] = "Evicted"
    assert last_words(evicted, {}) == "pod p failed: Evicted"


@pytest.mark.parametrize(
    ("message", "found", "cut"),
    [
        ("", {}, False),
        ("done", {}, False),
        ("[1]", {}, False),
        ('\n {"a": 1, "b": "x"}\n', {"a": 1, "b": "x"}, False),
        ('{"a": 1', {}, False),
        ('{"a": "' + "x" * 4089, {}, True),
        ('{"a": "' + "ü" * 2045, {}, True),
    ],
)
def test_a_termination_message_is_a_result_when_it_is_a_json_object(message, found, cut):
    read, note = result(message)
    assert read == found
    assert ("cut at 4096 bytes" in note) == cut


def job(*conditions: Any, spec: Any = None, **status: Any) -> dict[str, Any]:
    said = [{"type": t, "status": s, "reason": "R", "lastTransitionTime": "T"} for t, s in conditions]
    return {"metadata": {"uid": "w"}, "spec": spec or {}, "status": {"conditions": said, **status}}


def test_a_job_has_ended_when_a_condition_says_so():
    assert Workload().verdict is None
    assert Workload(JOBS, job(("Suspended", "True"), ("Complete", "False"))).verdict is None
    good = Workload(JOBS, job(("SuccessCriteriaMet", "True"), ("Complete", "True"), completionTime="C")).verdict
    bad = Workload(JOBS, job(("Failed", "True"))).verdict
    assert good is not None
    assert (good.succeeded, good.at) == (True, "C")
    assert bad is not None
    assert (bad.succeeded, bad.reason, bad.at) == (False, "R", "T")


def test_a_run_that_succeeded_is_told_by_a_pod_that_did():
    pods = (indexed(0, phase="Failed"), indexed(1, phase="Succeeded"))
    assert Workload(JOBS, job(), pods).lead is pods[0]
    assert Workload(JOBS, job(("Complete", "True")), pods).lead is pods[1]


def test_each_type_counts_wanted_pods_and_failures_its_own_way():
    restarted = pod()
    restarted.raw["status"]["containerStatuses"][1]["restartCount"] = 2
    batch = Workload(JOBS, job(spec={"parallelism": 3, "replicas": 9, "backoffLimit": 4}, failed=1), (restarted,))
    stateful = Workload(STATEFUL_SETS, job(spec={"parallelism": 3, "replicas": 9}, failed=1), (restarted,))
    assert (batch.wanted, batch.failures, batch.retry_limit) == (3, 1, 4)
    assert (stateful.wanted, stateful.failures, stateful.retry_limit) == (9, 2, 0)


def test_the_last_fault_is_none_of_the_infrastructure():
    own = pod("a", phase="Failed", created=1)
    lost = pod("b", phase="Failed", created=2, conditions=[("DisruptionTarget", "True", {})])
    found = Workload(JOBS, job(), (own, lost, pod("c", created=3)))
    assert found.last_failed is lost
    assert found.last_fault is own


def test_the_limit_of_gpus_is_what_the_spec_says_and_nothing_else():
    said = {"limits": {"cpu": "1", "nvidia.com/gpu": 9}, "requests": {"nvidia.com/gpu": "9"}, "claims": [{"name": "c"}]}
    assert gpu_resources(said, 2) == {"limits": {"cpu": "1", "nvidia.com/gpu": "2"}, "claims": [{"name": "c"}]}
    assert gpu_resources(said, 0) == {"limits": {"cpu": "1"}, "claims": [{"name": "c"}]}
    assert gpu_resources({}, 0) == {}
    assert said["limits"]["nvidia.com/gpu"] == 9


def test_a_gpu_type_selects_a_node_only_with_gpus_and_not_for_any():
    assert gpu_node(1, "H100") == {"gryvia.io/gpu": "H100"}
    assert [gpu_node(0, "H100"), gpu_node(1, "any"), gpu_node(1, ""), gpu_node(1, None)] == [{}] * 4


def test_shared_memory_is_there_for_gpus_unless_the_user_has_their_own():
    volumes, mounts = shared_memory(1, [{"mountPath": "/data"}])
    assert volumes[0]["name"] == mounts[0]["name"]
    assert mounts[0]["mountPath"] == "/dev/shm"
    assert shared_memory(1, [{"mountPath": "/dev/shm/"}]) == ([], [])
    assert shared_memory(0, []) == ([], [])


@given(st.lists(st.fixed_dictionaries({"name": st.sampled_from("abc"), "value": st.text(max_size=2)}), max_size=8))
def test_of_variables_with_one_name_the_last_stays(variables):
    kept = without_repeats(variables)
    assert {v["name"]: v["value"] for v in kept} == {v["name"]: v["value"] for v in variables}
    assert len(kept) == len({v["name"] for v in variables})


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 3) | st.lists(st.booleans(), max_size=2), max_size=4))
def test_the_hash_of_a_spec_depends_on_its_content_alone(said):
    turned = dict(reversed(list(said.items())))
    assert spec_hash(said) == spec_hash(json.loads(json.dumps(turned)))
    assert spec_hash(said) != spec_hash({**said, "one more": 1})


@given(st.text(alphabet="ab-.", min_size=1, max_size=90), st.integers(20, NAME_LIMIT))
def test_a_child_name_stays_within_the_limit_and_apart_from_others(name, limit):
    made = child_name(name, "x", limit=limit)
    assert len(made) <= limit
    assert made == (f"{name}-x" if len(name) + 2 <= limit else child_name(name, "x", limit=limit))
    assert made != child_name(f"{name}b", "x", limit=limit)


def test_a_partial_manifest_names_the_object_and_holds_these_fields_alone():
    live = {"metadata": {"name": "w", "namespace": "ns", "uid": "u"}, "spec": {"a": 1}}
    assert partial_manifest(live, JOBS, {"suspend": True}) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"suspend": True},
    }
    assert "namespace" not in partial_manifest({"metadata": {"name": "n"}}, NODES, {})["metadata"]
