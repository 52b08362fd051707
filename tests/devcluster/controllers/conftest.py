"""A registry and the controllers on one virtual clock, with the test in the kubelet's place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.clock import VirtualClock, stamp
from gryvia_devcluster.controllers import run_controllers
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import ResourceType

Json = dict[str, Any]

RESOURCES = {
    "Namespace": ("", "namespaces"),
    "Pod": ("", "pods"),
    "Service": ("", "services"),
    "Endpoints": ("", "endpoints"),
    "EndpointSlice": ("discovery.k8s.io", "endpointslices"),
    "ConfigMap": ("", "configmaps"),
    "PersistentVolumeClaim": ("", "persistentvolumeclaims"),
    "PersistentVolume": ("", "persistentvolumes"),
    "Event": ("", "events"),
    "Job": ("batch", "jobs"),
    "Deployment": ("apps", "deployments"),
    "ReplicaSet": ("apps", "replicasets"),
    "StatefulSet": ("apps", "statefulsets"),
    "ControllerRevision": ("apps", "controllerrevisions"),
}


@dataclass
class Cluster:
    api: Registry
    clock: VirtualClock

    def type(self, kind: str) -> ResourceType:
        return self.api.resource(*RESOURCES[kind])

    def create(self, obj: Json, namespace: str | None = "default") -> Json:
        return self.api.create(self.type(obj["kind"]), namespace, obj)

    def get(self, kind: str, name: str, namespace: str | None = "default") -> Json:
        return self.api.get(self.type(kind), namespace, name)

    def exists(self, kind: str, name: str, namespace: str | None = "default") -> bool:
        try:
            self.get(kind, name, namespace)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            return False
        return True

    def all(self, kind: str, namespace: str | None = "default", labels: str = "") -> list[Json]:
        return self.api.list(self.type(kind), namespace, labels=labels)[0]

    def patch(self, kind: str, name: str, body: Json, namespace: str | None = "default", **options: Any) -> Json:
        return self.api.patch(self.type(kind), namespace, name, body, "application/merge-patch+json", **options)

    def delete(self, kind: str, name: str, namespace: str | None = "default", **options: Any) -> None:
        self.api.delete(self.type(kind), namespace, name, **options)

    def pods(self, labels: str = "") -> list[Json]:
        return self.all("Pod", labels=labels)

    def run_pod(self, pod: Json, ip: str = "127.1.0.1", *, ready: bool = True) -> None:
        """Bind a pod and make it Running, as the node would."""
        name, now = pod["metadata"]["name"], stamp(self.clock.now())
        self.patch("Pod", name, {"spec": {"nodeName": "here"}})
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": now}
        running = {"name": "main", "image": "x", "imageID": "", "restartCount": 0, "ready": ready}
        running["state"] = {"running": {"startedAt": now}}
        status = {"phase": "Running", "podIP": ip, "conditions": [condition], "containerStatuses": [running]}
        self.patch("Pod", name, {"status": status}, subresource="status")

    def end_pod(self, pod: Json, code: int = 0, *, conditions: tuple[Json, ...] = ()) -> None:
        """Make a pod end with an exit code, as the node would."""
        now = stamp(self.clock.now())
        if not pod["spec"].get("nodeName"):
            self.run_pod(pod)
        ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "finishedAt": now}
        state = {"name": "main", "image": "x", "imageID": "", "restartCount": 0, "ready": False}
        state["state"] = {"terminated": ended}
        status = {
            "phase": "Succeeded" if code == 0 else "Failed",
            "containerStatuses": [state],
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": now}, *conditions],
        }
        self.patch("Pod", pod["metadata"]["name"], {"status": status}, subresource="status")

    def finish_deletions(self) -> None:
        """Remove the pods that are only marked, as the node does when their processes have ended."""
        for pod in self.pods():
            if "deletionTimestamp" in pod["metadata"]:
                self.delete("Pod", pod["metadata"]["name"], grace_seconds=0)

    async def settle(self) -> None:
        await self.clock.settle()

    async def advance(self, seconds: float) -> None:
        await self.clock.advance(seconds)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    clock = VirtualClock()
    api = Registry(clock=clock)
    cluster = Cluster(api, clock)
    if not cluster.exists("Namespace", "default", None):
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}, None)
    task = asyncio.create_task(run_controllers(api, clock=clock))
    await cluster.settle()
    yield cluster
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
