"""A registry, the controllers and a node with real processes, on the real clock."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.clock import RealClock
from gryvia_devcluster.controllers import Settings as ControllerSettings
from gryvia_devcluster.controllers import run_controllers
from gryvia_devcluster.node import Node, Settings
from gryvia_devcluster.types import ResourceType

Json = dict[str, Any]
GROUPS = {"jobs": "batch", "deployments": "apps", "statefulsets": "apps"}


@dataclass
class Machine:
    api: Registry
    node: Node
    data_dir: Path

    def type(self, plural: str) -> ResourceType:
        return self.api.resource(GROUPS.get(plural, ""), plural)

    def create(self, plural: str, obj: Json, namespace: str = "default") -> Json:
        versions = {"batch": "batch/v1", "apps": "apps/v1"}
        rt = self.type(plural)
        head = {"apiVersion": versions.get(rt.group, "v1"), "kind": rt.kind}
        return self.api.create(rt, namespace, {**head, **obj})

    def get(self, plural: str, name: str) -> Json:
        return self.api.get(self.type(plural), "default", name)

    def all(self, plural: str, labels: str = "") -> list[Json]:
        return self.api.list(self.type(plural), "default", labels=labels)[0]

    def pod(self, name: str, code: str = "", **spec: Any) -> Json:
        """A pod named `name` whose container `main` runs Python code, or what `command` says."""
        container = {"name": "main", "image": "python:3.12", "command": ["python", "-c", code]}
        container |= spec.pop("main", {})
        body = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [container], **spec}
        labels = {"app": name}
        return self.create("pods", {"metadata": {"name": name, "labels": labels}, "spec": body})

    async def until(self, plural: str, name: str, holds: Callable[[Json], Any], seconds: float = 10.0) -> Json:
        """The object as soon as `holds` is true of it: by watching, not by asking again and again."""
        seen: Json = {}
        try:
            async with asyncio.timeout(seconds):
                async for event in self.api.watch(self.type(plural)):
                    if event.object["metadata"]["name"] == name:
                        seen = event.object
                        if event.type != "DELETED" and holds(event.object):
                            return event.object
        except TimeoutError:
            raise AssertionError(f"{plural}/{name} did not get there; last seen: {seen.get('status')}") from None
        raise AssertionError("the watch ended")

    async def gone(self, plural: str, name: str, seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            if not any(obj["metadata"]["name"] == name for obj in self.all(plural)):
                return
            async for event in self.api.watch(self.type(plural)):
                if event.type == "DELETED" and event.object["metadata"]["name"] == name:
                    return

    async def phase(self, name: str, *phases: str, seconds: float = 10.0) -> Json:
        return await self.until("pods", name, lambda pod: pod["status"].get("phase") in phases, seconds)

    def log(self, pod: Json, container: str = "main", *, previous: bool = False) -> str:
        return self.node.logs.path(pod, container, previous=previous).read_text()

    def reasons(self, name: str) -> set[str]:
        events = self.all("events")
        return {event["reason"] for event in events if event["involvedObject"]["name"] == name}


@asynccontextmanager
async def running(api: Registry, data_dir: Path, settings: Settings, images: Path | None) -> AsyncIterator[Machine]:
    node = Node(api, data_dir=data_dir, images_file=images, clock=RealClock(), settings=settings)
    async with asyncio.TaskGroup() as group:
        fast = ControllerSettings(job_backoff=timedelta(seconds=0.1))
        tasks = [
            group.create_task(node.run()),
            group.create_task(run_controllers(api, clock=RealClock(), settings=fast)),
        ]
        machine = Machine(api, node, data_dir)
        try:
            yield machine
        finally:
            for task in tasks:
                task.cancel()


def new_registry() -> Registry:
    api = Registry(clock=RealClock())
    namespaces = api.resource("", "namespaces")
    if not any(ns["metadata"]["name"] == "default" for ns in api.list(namespaces)[0]):
        api.create(namespaces, None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    return api


IMAGES = f"""
images:
  - image: "tool:*"
    entrypoint: ["{sys.executable}", "-c"]
    cmd: ["print('default command')"]
    env: {{FROM_IMAGE: "yes"}}
"""


@pytest.fixture
def settings() -> Settings:
    return Settings(restart_backoff=0.2, image_backoff=0.2, gpus=1, labels={"zone": "here"})


@pytest.fixture
async def machine(tmp_path: Path, settings: Settings) -> AsyncIterator[Machine]:
    images = tmp_path / "images.yaml"
    images.write_text(IMAGES)
    async with running(new_registry(), tmp_path / "data", settings, images) as machine:
        yield machine


@pytest.fixture
def start(tmp_path: Path, settings: Settings) -> Callable[[], AbstractAsyncContextManager[Machine]]:
    """Start a node on the same cluster and data directory; again after it has ended."""
    api = new_registry()
    return lambda: running(api, tmp_path / "data", settings, None)
