"""Claims are bound at once, are protected while used, and take their volume with them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def claim(name: str = "data") -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def pod(name: str, claim_name: str) -> Json:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}
    spec = {"containers": [{"name": "main", "image": "x"}], "volumes": [volume]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def test_a_claim_gets_a_volume_of_its_own(cluster: Any) -> None:
    cluster.create(claim())
    await cluster.settle()
    bound = cluster.get("PersistentVolumeClaim", "data")
    assert bound["status"]["phase"] == "Bound"
    assert bound["status"]["capacity"] == {"storage": "2Gi"}
    volume = cluster.get("PersistentVolume", bound["spec"]["volumeName"], None)
    assert volume["status"]["phase"] == "Bound"
    assert volume["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]


async def test_a_claim_made_again_does_not_get_the_old_volume(cluster: Any) -> None:
    first = cluster.create(claim())
    await cluster.settle()
    cluster.delete("PersistentVolumeClaim", "data")
    await cluster.settle()
    assert cluster.all("PersistentVolume", None) == []
    second = cluster.create(claim())
    await cluster.settle()
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    name = cluster.get("PersistentVolumeClaim", "data")["spec"]["volumeName"]
    assert name == f"pvc-{second['metadata']['uid']}"


async def test_a_claim_in_use_stays_until_the_pod_has_gone(cluster: Any) -> None:
    cluster.create(claim())
    cluster.run_pod(cluster.create(pod("user", "data")))
    await cluster.settle()
    cluster.delete("PersistentVolumeClaim", "data")
    await cluster.settle()
    assert cluster.exists("PersistentVolumeClaim", "data")
    cluster.end_pod(cluster.get("Pod", "user"))
    await cluster.settle()
    assert not cluster.exists("PersistentVolumeClaim", "data")
