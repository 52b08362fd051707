"""Rollouts as `kubectl rollout status` sees them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def deployment(replicas: int = 3, image: str = "v1", **spec: Any) -> Json:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def image_patch(image: str) -> Json:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}


def rolled_out(cluster: Any) -> bool:
    """The conditions of `kubectl rollout status` for success."""
    found = cluster.get("Deployment", "web")
    status, wanted = found["status"], found["spec"]["replicas"]
    return (
        status["observedGeneration"] >= found["metadata"]["generation"]
        and status.get("updatedReplicas", 0) == wanted
        and status.get("replicas", 0) == wanted
        and status.get("availableReplicas", 0) == wanted
    )


def condition(cluster: Any, kind: str) -> Json:
    return next(c for c in cluster.get("Deployment", "web")["status"]["conditions"] if c["type"] == kind)


async def make_ready(cluster: Any) -> None:
    """Start whatever is pending and remove whatever is on its way out, until nothing changes."""
    for _ in range(20):
        await cluster.settle()
        cluster.finish_deletions()
        await cluster.settle()
        pending = [p for p in cluster.pods() if p["status"]["phase"] == "Pending"]
        for pod in pending:
            cluster.run_pod(pod)
        await cluster.settle()
        if not pending:
            return


async def test_a_new_deployment_rolls_out(cluster: Any) -> None:
    cluster.create(deployment())
    await cluster.settle()
    assert condition(cluster, "Available")["status"] == "False"
    await make_ready(cluster)
    assert rolled_out(cluster)
    assert condition(cluster, "Available")["reason"] == "MinimumReplicasAvailable"
    assert condition(cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"
    (rs,) = cluster.all("ReplicaSet")
    assert rs["metadata"]["name"].startswith("web-")
    assert rs["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert all(p["metadata"]["labels"]["pod-template-hash"] for p in cluster.pods())


async def test_a_rolling_update_never_takes_too_many_pods_away(cluster: Any) -> None:
    cluster.create(deployment(4))
    await make_ready(cluster)
    cluster.patch("Deployment", "web", image_patch("v2"))
    for _ in range(20):
        await cluster.settle()
        pods = [p for p in cluster.pods() if "deletionTimestamp" not in p["metadata"]]
        assert len(pods) <= 5
        assert sum(p["status"]["phase"] == "Running" for p in pods) >= 3
        cluster.finish_deletions()
        pending = [p for p in cluster.pods() if p["status"]["phase"] == "Pending"]
        if not pending:
            break
        cluster.run_pod(pending[0])
    assert rolled_out(cluster)
    assert {p["spec"]["containers"][0]["image"] for p in cluster.pods()} == {"v2"}
    assert cluster.get("Deployment", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


async def test_going_back_to_an_old_template_uses_its_replicaset_again(cluster: Any) -> None:
    cluster.create(deployment())
    await make_ready(cluster)
    cluster.patch("Deployment", "web", image_patch("v2"))
    await make_ready(cluster)
    cluster.patch("Deployment", "web", image_patch("v1"))
    await make_ready(cluster)
    assert rolled_out(cluster)
    assert len(cluster.all("ReplicaSet")) == 2
    assert cluster.get("Deployment", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


async def test_a_rollout_that_does_not_progress_says_so_after_its_deadline(cluster: Any) -> None:
    cluster.create(deployment(progressDeadlineSeconds=60))
    await cluster.advance(59)
    assert condition(cluster, "Progressing")["status"] == "True"
    await cluster.advance(2)
    assert condition(cluster, "Progressing")["reason"] == "ProgressDeadlineExceeded"
    await make_ready(cluster)
    assert condition(cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"


async def test_recreate_stops_all_old_pods_before_it_starts_new_ones(cluster: Any) -> None:
    cluster.create(deployment(2, strategy={"type": "Recreate"}))
    await make_ready(cluster)
    cluster.patch("Deployment", "web", image_patch("v2"))
    await cluster.settle()
    assert {p["spec"]["containers"][0]["image"] for p in cluster.pods()} == {"v1"}
    await make_ready(cluster)
    assert {p["spec"]["containers"][0]["image"] for p in cluster.pods()} == {"v2"}
    assert rolled_out(cluster)


async def test_scaling_down_keeps_the_ready_pods(cluster: Any) -> None:
    cluster.create(deployment(3))
    await cluster.settle()
    ready = cluster.pods()[1]
    cluster.run_pod(ready)
    cluster.patch("Deployment", "web", {"spec": {"replicas": 1}})
    await cluster.settle()
    assert [p["metadata"]["name"] for p in cluster.pods()] == [ready["metadata"]["name"]]


async def test_a_pod_is_available_only_after_its_minimum_of_ready_seconds(cluster: Any) -> None:
    cluster.create(deployment(1, minReadySeconds=10))
    await make_ready(cluster)
    assert not rolled_out(cluster)
    await cluster.advance(10)
    assert rolled_out(cluster)


async def test_deleting_a_deployment_deletes_everything_below_it(cluster: Any) -> None:
    cluster.create(deployment())
    await make_ready(cluster)
    cluster.delete("Deployment", "web", propagation="Foreground")
    await cluster.settle()
    assert cluster.exists("Deployment", "web")
    cluster.finish_deletions()
    await cluster.settle()
    assert not cluster.exists("Deployment", "web")
    assert cluster.all("ReplicaSet") == []
    assert cluster.pods() == []
