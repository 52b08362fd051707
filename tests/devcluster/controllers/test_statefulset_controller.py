"""StatefulSets: order, identity, claims, updates."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def statefulset(replicas: int = 3, **spec: Any) -> Json:
    labels = {"app": "db"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "v1"}]}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    body = {"replicas": replicas, "serviceName": "db", "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {**body, "volumeClaimTemplates": [claim], **spec},
    }


def names(cluster: Any) -> list[str]:
    return [pod["metadata"]["name"] for pod in cluster.pods()]


async def start_all(cluster: Any) -> None:
    for _ in range(10):
        await cluster.settle()
        cluster.finish_deletions()
        await cluster.settle()
        pending = [p for p in cluster.pods() if p["status"]["phase"] == "Pending"]
        if not pending:
            return
        for pod in pending:
            cluster.run_pod(pod)


async def test_pods_come_one_after_another_each_when_the_one_before_is_ready(cluster: Any) -> None:
    cluster.create(statefulset())
    await cluster.settle()
    assert names(cluster) == ["db-0"]
    cluster.run_pod(cluster.get("Pod", "db-0"), ready=False)
    await cluster.settle()
    assert names(cluster) == ["db-0"]
    cluster.run_pod(cluster.get("Pod", "db-0"))
    await cluster.settle()
    assert names(cluster) == ["db-0", "db-1"]


async def test_parallel_pods_come_at_once_with_their_identity_and_claim(cluster: Any) -> None:
    cluster.create(statefulset(podManagementPolicy="Parallel"))
    await cluster.settle()
    assert names(cluster) == ["db-0", "db-1", "db-2"]
    pod = cluster.get("Pod", "db-1")
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-1"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-1", "db")
    assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}]
    assert cluster.get("PersistentVolumeClaim", "data-db-1")["status"]["phase"] == "Bound"


async def test_an_update_goes_from_the_highest_ordinal_down(cluster: Any) -> None:
    cluster.create(statefulset())
    await start_all(cluster)
    old = cluster.get("StatefulSet", "db")["status"]
    container = {"name": "main", "image": "v2"}
    cluster.patch("StatefulSet", "db", {"spec": {"template": {"spec": {"containers": [container]}}}})
    await cluster.settle()
    leaving = [p["metadata"]["name"] for p in cluster.pods() if "deletionTimestamp" in p["metadata"]]
    assert leaving == ["db-2"]
    await start_all(cluster)
    status = cluster.get("StatefulSet", "db")["status"]
    assert status["updatedReplicas"] == status["readyReplicas"] == 3
    assert status["currentRevision"] == status["updateRevision"] != old["updateRevision"]
    assert {p["spec"]["containers"][0]["image"] for p in cluster.pods()} == {"v2"}


async def test_a_partition_holds_the_lower_ordinals_back(cluster: Any) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    cluster.create(statefulset(updateStrategy=strategy))
    await start_all(cluster)
    container = {"name": "main", "image": "v2"}
    cluster.patch("StatefulSet", "db", {"spec": {"template": {"spec": {"containers": [container]}}}})
    await start_all(cluster)
    images = {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in cluster.pods()}
    assert images == {"db-0": "v1", "db-1": "v1", "db-2": "v2"}
    cluster.delete("Pod", "db-0", grace_seconds=0)
    await start_all(cluster)
    assert cluster.get("Pod", "db-0")["spec"]["containers"][0]["image"] == "v1"


async def test_shrinking_takes_the_highest_away_and_keeps_its_claim(cluster: Any) -> None:
    cluster.create(statefulset())
    await start_all(cluster)
    cluster.patch("StatefulSet", "db", {"spec": {"replicas": 2}})
    await start_all(cluster)
    assert names(cluster) == ["db-0", "db-1"]
    assert cluster.exists("PersistentVolumeClaim", "data-db-2")


async def test_claims_go_with_their_pods_when_the_set_says_so(cluster: Any) -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    cluster.create(statefulset(2, persistentVolumeClaimRetentionPolicy=policy))
    await start_all(cluster)
    cluster.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    await start_all(cluster)
    assert not cluster.exists("PersistentVolumeClaim", "data-db-1")
    cluster.delete("StatefulSet", "db")
    await cluster.settle()
    cluster.finish_deletions()
    await cluster.settle()
    assert cluster.all("PersistentVolumeClaim") == []
    assert cluster.all("PersistentVolume", None) == []


async def test_a_failed_pod_comes_back_under_its_name(cluster: Any) -> None:
    cluster.create(statefulset(1))
    await start_all(cluster)
    before = cluster.get("Pod", "db-0")
    cluster.end_pod(before, 1)
    await cluster.settle()
    after = cluster.get("Pod", "db-0")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"]["volumes"] == before["spec"]["volumes"]
