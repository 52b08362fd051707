"""The life of Jobs as a user sees it through the API, on a virtual clock."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def job(name: str = "train", restart: str = "Never", **spec: Any) -> Json:
    template = {"spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": "x"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def indexed(completions: int, **spec: Any) -> Json:
    return job(completions=completions, completionMode="Indexed", **{"parallelism": completions, **spec})


def condition(obj: Json, kind: str) -> Json | None:
    return next((c for c in obj["status"].get("conditions", ()) if c["type"] == kind), None)


def by_index(cluster: Any, index: int) -> list[Json]:
    return [
        p for p in cluster.pods() if p["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == str(index)
    ]


async def test_an_indexed_job_gives_each_pod_its_index_and_name(cluster: Any) -> None:
    cluster.create(indexed(3))
    await cluster.settle()
    pods = sorted(cluster.pods(), key=lambda p: p["spec"]["hostname"])
    assert [p["spec"]["hostname"] for p in pods] == ["train-0", "train-1", "train-2"]
    first = pods[0]
    assert first["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "train"
    assert first["metadata"]["labels"]["job-name"] == "train"
    assert first["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "0"
    env = {e["name"]: e for e in first["spec"]["containers"][0]["env"]}
    assert "job-completion-index" in env["JOB_COMPLETION_INDEX"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert cluster.get("Job", "train")["status"]["active"] == 3


async def test_a_job_completes_when_every_index_has_succeeded(cluster: Any) -> None:
    cluster.create(indexed(3))
    await cluster.settle()
    for pod in cluster.pods():
        cluster.end_pod(pod)
        await cluster.settle()
    done = cluster.get("Job", "train")
    assert done["status"]["completedIndexes"] == "0-2"
    assert done["status"]["succeeded"] == 3
    assert condition(done, "Complete")["status"] == "True"
    assert done["status"]["completionTime"]
    assert all("finalizers" not in p["metadata"] for p in cluster.pods())


async def test_deleting_a_counted_pod_does_not_make_the_job_forget_it(cluster: Any) -> None:
    cluster.create(indexed(2, parallelism=1))
    await cluster.settle()
    (pod,) = cluster.pods()
    cluster.end_pod(pod)
    await cluster.settle()
    cluster.delete("Pod", pod["metadata"]["name"])
    await cluster.settle()
    assert cluster.get("Job", "train")["status"]["completedIndexes"] == "0"
    assert [p["spec"]["hostname"] for p in cluster.pods()] == ["train-1"]


async def test_a_failed_pod_is_replaced_after_ten_seconds_then_twenty(cluster: Any) -> None:
    cluster.create(job(backoffLimit=3))
    await cluster.settle()
    cluster.end_pod(cluster.pods()[0], 1)
    await cluster.advance(9)
    assert len(cluster.pods()) == 1
    await cluster.advance(1)
    assert len(cluster.pods()) == 2
    cluster.end_pod(next(p for p in cluster.pods() if p["status"]["phase"] == "Pending"), 1)
    await cluster.advance(19)
    assert len(cluster.pods()) == 2
    await cluster.advance(1)
    assert len(cluster.pods()) == 3


async def test_a_job_fails_when_its_pods_failed_more_often_than_the_limit(cluster: Any) -> None:
    cluster.create(job(backoffLimit=0))
    await cluster.settle()
    cluster.end_pod(cluster.pods()[0], 1)
    await cluster.settle()
    failed = cluster.get("Job", "train")
    assert condition(failed, "Failed")["reason"] == "BackoffLimitExceeded"
    assert failed["status"]["failed"] == 1
    await cluster.advance(1000)
    assert len(cluster.pods()) == 1


async def test_a_deadline_ends_running_pods_before_the_job_is_failed(cluster: Any) -> None:
    cluster.create(job(activeDeadlineSeconds=60))
    await cluster.settle()
    cluster.run_pod(cluster.pods()[0])
    await cluster.advance(60)
    ending = cluster.get("Job", "train")
    assert condition(ending, "FailureTarget")["reason"] == "DeadlineExceeded"
    assert condition(ending, "Failed") is None
    cluster.finish_deletions()
    await cluster.settle()
    assert condition(cluster.get("Job", "train"), "Failed")["reason"] == "DeadlineExceeded"


async def test_suspending_removes_the_pods_and_resuming_starts_the_clock_anew(cluster: Any) -> None:
    cluster.create(indexed(2))
    await cluster.settle()
    for pod in cluster.pods():
        cluster.run_pod(pod)
    await cluster.settle()
    assert cluster.get("Job", "train")["status"]["ready"] == 2
    cluster.patch("Job", "train", {"spec": {"suspend": True}})
    await cluster.settle()
    cluster.finish_deletions()
    await cluster.settle()
    paused = cluster.get("Job", "train")
    assert cluster.pods() == []
    assert condition(paused, "Suspended")["status"] == "True"
    assert "startTime" not in paused["status"]
    assert "failed" not in paused["status"]
    await cluster.advance(100)
    cluster.patch("Job", "train", {"spec": {"suspend": False}})
    await cluster.settle()
    resumed = cluster.get("Job", "train")
    assert len(cluster.pods()) == 2
    assert condition(resumed, "Suspended")["reason"] == "JobResumed"
    assert resumed["status"]["startTime"] == "2030-01-01T00:01:40Z"


async def test_an_exit_code_of_the_failure_policy_fails_the_job_at_once(cluster: Any) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    cluster.create(indexed(2, podFailurePolicy={"rules": [rule]}))
    await cluster.settle()
    pod = by_index(cluster, 1)[0]
    cluster.end_pod(pod, 42)
    await cluster.settle()
    cluster.finish_deletions()
    await cluster.settle()
    failed = condition(cluster.get("Job", "train"), "Failed")
    assert failed["reason"] == "PodFailurePolicy"
    name = pod["metadata"]["name"]
    assert failed["message"] == (
        f"Container main for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
    )


async def test_a_disrupted_pod_is_replaced_without_being_counted(cluster: Any) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    cluster.create(job(backoffLimit=0, podFailurePolicy={"rules": [rule]}))
    await cluster.settle()
    disrupted = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    cluster.end_pod(cluster.pods()[0], 143, conditions=(disrupted,))
    await cluster.advance(10)
    assert "failed" not in cluster.get("Job", "train")["status"]
    assert len(cluster.pods()) == 2


async def test_a_success_policy_ends_the_job_when_enough_indexes_are_done(cluster: Any) -> None:
    cluster.create(indexed(4, successPolicy={"rules": [{"succeededCount": 2}]}))
    await cluster.settle()
    for index in (1, 3):
        cluster.end_pod(by_index(cluster, index)[0])
    await cluster.settle()
    cluster.finish_deletions()
    await cluster.settle()
    done = cluster.get("Job", "train")
    assert condition(done, "SuccessCriteriaMet")["reason"] == "SuccessPolicy"
    assert condition(done, "Complete")["message"] == "Matched rules at index 0"
    assert done["status"]["completedIndexes"] == "1,3"
    assert len(cluster.pods()) == 2


async def test_a_finished_job_and_its_pods_go_after_their_time_to_live(cluster: Any) -> None:
    cluster.create(job(ttlSecondsAfterFinished=30))
    await cluster.settle()
    cluster.end_pod(cluster.pods()[0])
    await cluster.advance(29)
    assert cluster.exists("Job", "train")
    await cluster.advance(1)
    assert not cluster.exists("Job", "train")
    assert cluster.pods() == []


async def test_each_index_has_its_own_limit(cluster: Any) -> None:
    cluster.create(indexed(2, backoffLimitPerIndex=1))
    await cluster.settle()
    cluster.end_pod(by_index(cluster, 0)[0], 1)
    cluster.end_pod(by_index(cluster, 1)[0])
    await cluster.advance(10)
    second = next(p for p in by_index(cluster, 0) if p["status"]["phase"] == "Pending")
    assert second["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1"
    cluster.end_pod(second, 1)
    await cluster.settle()
    failed = cluster.get("Job", "train")
    assert failed["status"]["failedIndexes"] == "0"
    assert failed["status"]["completedIndexes"] == "1"
    assert condition(failed, "Failed")["reason"] == "FailedIndexes"


async def test_a_work_queue_job_stops_making_pods_after_the_first_success(cluster: Any) -> None:
    cluster.create(job(parallelism=3))
    await cluster.settle()
    first, *others = cluster.pods()
    cluster.end_pod(first)
    await cluster.settle()
    assert len(cluster.pods()) == 3
    assert condition(cluster.get("Job", "train"), "Complete") is None
    for pod in others:
        cluster.end_pod(pod)
    await cluster.settle()
    assert condition(cluster.get("Job", "train"), "Complete")["status"] == "True"


async def test_a_pod_deleted_by_hand_counts_as_failed_and_is_replaced(cluster: Any) -> None:
    cluster.create(indexed(1))
    await cluster.settle()
    (pod,) = cluster.pods()
    cluster.run_pod(pod)
    await cluster.settle()
    cluster.delete("Pod", pod["metadata"]["name"])
    await cluster.settle()
    cluster.finish_deletions()
    await cluster.advance(10)
    assert cluster.get("Job", "train")["status"]["failed"] == 1
    (replacement,) = cluster.pods()
    assert replacement["metadata"]["name"] != pod["metadata"]["name"]


async def test_deleting_a_job_deletes_its_pods(cluster: Any) -> None:
    cluster.create(indexed(2))
    await cluster.settle()
    cluster.delete("Job", "train")
    await cluster.settle()
    assert cluster.pods() == []


async def test_elastic_shrinking_takes_the_highest_indexes_away(cluster: Any) -> None:
    cluster.create(indexed(3))
    await cluster.settle()
    cluster.patch("Job", "train", {"spec": {"parallelism": 2, "completions": 2}})
    await cluster.settle()
    assert sorted(p["spec"]["hostname"] for p in cluster.pods()) == ["train-0", "train-1"]
