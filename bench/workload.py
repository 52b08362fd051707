"""Many GryviaAIJobs: the objects, how they are created, and how it is seen that each has come as far as it should.

A watch tells that to the millisecond and at the price of one more watcher. Reading lists of thousands again and again, which the
first version of this did, took a quarter of the API server's time from what was measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata, version_of
from gryvia_common.kube.resources import JOBS, SERVICES, Resource

CONNECTIONS = 16
NAMESPACE = "scale"
STANDSTILL = 60.0
Work = Callable[[], Awaitable[object]]


def job(name: str) -> Json:
    return {
        "apiVersion": AI_JOB.resource.api_version,
        "kind": AI_JOB.name,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "type": "training",
            "gpus": 0,
            "image": "python:3.11-slim",
            "command": ["python", "train.py"],
            "env": [{"name": "SEED", "value": name}],
        },
    }


async def in_parallel(work: Iterable[Work], count: int = CONNECTIONS) -> None:
    """`count` at a time."""
    pending = iter(work)

    async def worker() -> None:
        for one in pending:
            await one()

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(worker())


async def create_jobs(kube: Kube, names: Iterable[str]) -> None:
    def creation(name: str) -> Work:
        return lambda: kube.create(AI_JOB.resource, job(name))

    await in_parallel(map(creation, names))


@dataclass(slots=True)
class Seen:
    """The jobs, or what else is watched, that have come to one of the phases, each with the one it came to first, as a watch
    says it. `at`: when the last one did."""

    phases: frozenset[str]
    jobs: dict[str, str] = field(default_factory=dict)
    at: float = 0.0
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    async def all(self, names: Iterable[str]) -> float:
        """When the last of them came to it (time.perf_counter). TimeoutError when nothing moves any more."""
        wanted = set(names)
        while not wanted <= self.jobs.keys():
            self._more.clear()
            async with asyncio.timeout(STANDSTILL):
                await self._more.wait()
        return self.at

    def take(self, line: bytes) -> int:
        """The version that the watch has come to."""
        event = orjson.loads(line)
        if event["type"] == "ERROR":
            raise RuntimeError(f"the watch has failed: {event['object']}")
        phase = (event["object"].get("status") or {}).get("phase")
        if event["type"] == "MODIFIED" and phase in self.phases:
            name = metadata(event["object"])["name"]
            if name not in self.jobs:
                self.jobs[name] = phase
                self.at = time.perf_counter()
                self._more.set()
        return version_of(event["object"])


@asynccontextmanager
async def watching(kube: Kube, *phases: str, resource: Resource = AI_JOB.resource) -> AsyncIterator[Seen]:
    """From now on. A watch that fails ends the block."""
    version = (await kube.list_page(resource, limit=1)).version
    seen = Seen(frozenset(phases))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_watch(kube, resource, version, seen))
        yield seen
        task.cancel()


async def _watch(kube: Kube, resource: Resource, version: int, seen: Seen) -> None:
    """The server ends a watch when it likes, one of a type that it has just learnt above all: then it is taken up again."""
    while True:
        async with contextlib.aclosing(kube.watch(resource, version, timeout_seconds=3600, idle=600.0)) as lines_in:
            async for lines in lines_in:
                for line in lines:
                    version = seen.take(line)


async def bare_writer(kube: Kube, names: Iterable[str]) -> None:
    """What the platform asks of the API server for these jobs, by a program that does nothing else: create the object, its
    Service (headless as ours: to allot an address would cost the server more than all the rest) and its Job, write its status.
    What it writes is what the platform wrote for the first job that is there."""
    template = (await kube.list_page(JOBS, NAMESPACE, limit=1)).items[0]
    service = (await kube.list_page(SERVICES, NAMESPACE, limit=1)).items[0]
    status = (await kube.list_page(AI_JOB.resource, NAMESPACE, limit=1)).items[0]["status"]

    def circle(name: str) -> Work:
        async def run() -> None:
            made = await kube.create(AI_JOB.resource, job(name))
            await kube.create(SERVICES, _copy(service, name, service["spec"]))
            await kube.create(JOBS, _copy(template, name, _job_spec(template)))
            version = {"resourceVersion": metadata(made)["resourceVersion"]}
            body = {"metadata": version, "status": status}
            await kube.patch(AI_JOB.resource, NAMESPACE, name, body, subresource="status")

        return run

    await in_parallel(map(circle, names))


def _copy(obj: Json, name: str, spec: Json) -> Json:
    kept: Json = {key: metadata(obj)[key] for key in ("labels", "annotations") if key in metadata(obj)}
    meta = {"name": name, "namespace": NAMESPACE, **kept}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": meta, "spec": spec}


def _without(obj: Json, *fields: str) -> Json:
    return {key: value for key, value in obj["spec"].items() if key not in fields}


def _job_spec(obj: Json) -> Json:
    """What a client would send: the selector and the labels that go with it are the server's."""
    spec = _without(obj, "selector")
    meta: Json = {**spec["template"]["metadata"]}
    meta["labels"] = {
        key: value for key, value in meta["labels"].items() if "controller-uid" not in key and "job-name" not in key
    }
    return {**spec, "template": {**spec["template"], "metadata": meta}}


async def names_of(kube: Kube, resource: Resource) -> set[str]:
    return {metadata(obj)["name"] for obj in await kube.list(resource, NAMESPACE)}
