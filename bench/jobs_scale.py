"""Many GryviaAIJobs at once: what they cost until each has its children and its status, on devcluster and on a real API server
(where `make kube-tools` has built one).

Bridge, jobs service and NATS are processes of their own, as in a cluster. One creator makes all objects at once with 16 connections;
the clock runs from the answer to its last create until every object has its batch Job and a phase.

jobs-settled: seconds for that; jobs-cpu: milliseconds of bridge, service and NATS an object; jobs-writes: the service's own writes an
object; jobs-against-bare: the time from the first create to the end, over that of a bare aiohttp writer which sends the same requests
(create the object, its Service and its Job, patch its status) to the same API server in the same run.

    python -m bench.jobs_scale [objects ...]
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families
from tools.realcluster.cluster import RealCluster
from tools.realcluster.programs import NotBuilt

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.crds import connected, install_crds
from gryvia_common.bus.settings import BusSettings
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import JOBS, NAMESPACES, SERVICES, Resource

NAMES = ("jobs-settled", "jobs-cpu", "jobs-writes", "jobs-against-bare")
COUNTS = (1000,)
CPU_GOAL = 5.0
WRITES_GOAL = 3.0
RATIO_GOAL = 1.3
CONNECTIONS = 16
NAMESPACE = "scale"
Work = Callable[[], Awaitable[None]]
_TICK = os.sysconf("SC_CLK_TCK")


def seconds_goal(objects: int) -> float:
    """6 s for 1,000, 75 s for 10,000."""
    return 6.0 if objects <= 1000 else objects * 0.0075


def job(number: int) -> Json:
    return {
        "apiVersion": AI_JOB.resource.api_version,
        "kind": AI_JOB.name,
        "metadata": {"name": f"job-{number:05}", "namespace": NAMESPACE},
        "spec": {
            "type": "training",
            "gpus": 0,
            "image": "python:3.11-slim",
            "command": ["python", "train.py"],
            "env": [{"name": "SEED", "value": str(number)}],
        },
    }


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process: CPU seconds so far."""

    pid: int

    def seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK


@asynccontextmanager
async def process(*command: str, log: Path, **environment: str) -> AsyncIterator[Process]:
    with log.open("ab") as output:
        started = await asyncio.create_subprocess_exec(
            sys.executable, *command, env={**os.environ, **environment}, stdin=DEVNULL, stdout=output, stderr=output
        )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.terminate()
            await started.wait()


@asynccontextmanager
async def devcluster(folder: Path) -> AsyncIterator[Path]:
    """A process of its own without a node, so that what is measured is the API server and us."""
    kubeconfig = folder / "kubeconfig"
    arguments = ("--data", str(folder / "cluster"), "--kubeconfig", str(kubeconfig), "--no-node", "--no-controllers")
    async with process("-m", "gryvia_devcluster", *arguments, log=folder / "cluster.log"):
        while not kubeconfig.exists() or not kubeconfig.read_text().endswith("\n"):
            await asyncio.sleep(0.05)
        yield kubeconfig


async def in_parallel(count: int, work: Iterable[Work]) -> None:
    """`count` at a time."""
    pending = iter(work)

    async def worker() -> None:
        for one in pending:
            await one()

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(worker())


async def settled(kube: Kube, objects: int) -> bool:
    """Every object has a phase and its Job. A list of thousands is dear: the cheap half is asked first."""
    found = await kube.list(AI_JOB.resource, NAMESPACE)
    if sum(1 for obj in found if (obj.get("status") or {}).get("phase")) < objects:
        return False
    return len(await kube.list(JOBS, NAMESPACE)) >= objects


async def bare(kube: Kube, objects: int) -> float:
    """The same requests by a program that does nothing else: seconds from the first to the last."""
    [template, *_] = await kube.list(JOBS, NAMESPACE)
    services = (await kube.list(SERVICES, NAMESPACE))[:1]
    status = (await kube.list(AI_JOB.resource, NAMESPACE))[0]["status"]

    def circle(number: int) -> Work:
        async def run() -> None:
            name = f"bare-{number:05}"
            manifest = job(number)
            manifest["metadata"]["name"] = name
            made = await kube.create(AI_JOB.resource, manifest)
            for service in services:
                await kube.create(
                    SERVICES, {**_renamed(service, name), "spec": _without(service, "clusterIP", "clusterIPs")}
                )
            await kube.create(JOBS, {**_renamed(template, name), "spec": _job_spec(template)})
            version = {"resourceVersion": metadata(made)["resourceVersion"]}
            body = {"metadata": version, "status": status}
            await kube.patch(AI_JOB.resource, NAMESPACE, name, body, subresource="status")

        return run

    started = time.perf_counter()
    await in_parallel(CONNECTIONS, [circle(number) for number in range(objects)])
    return time.perf_counter() - started


def _renamed(obj: Json, name: str) -> Json:
    kept = {key: metadata(obj)[key] for key in ("labels", "annotations") if key in metadata(obj)}
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {"name": name, "namespace": NAMESPACE, **kept},
    }


def _without(obj: Json, *fields: str) -> Json:
    return {key: value for key, value in obj["spec"].items() if key not in fields}


def _job_spec(obj: Json) -> Json:
    """What a client would send: the selector and the labels that go with it are the server's."""
    spec = _without(obj, "selector")
    meta = {**spec["template"]["metadata"]}
    meta["labels"] = {
        key: value for key, value in meta["labels"].items() if "controller-uid" not in key and "job-name" not in key
    }
    return {**spec, "template": {**spec["template"], "metadata": meta}}


async def clear(kube: Kube) -> None:
    for resource in (AI_JOB.resource, JOBS):
        await in_parallel(CONNECTIONS, [_deletion(kube, resource, obj) for obj in await kube.list(resource, NAMESPACE)])


def _deletion(kube: Kube, resource: Resource, obj: Json) -> Work:
    async def run() -> None:
        await kube.delete(resource, NAMESPACE, metadata(obj)["name"])

    return run


async def measure(objects: int, kubeconfig: Path, folder: Path, cluster: str) -> list[dict[str, object]]:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        nats = NatsServer(folder / "nats")
        await nats.start(supervise=False)
        stack.push_async_callback(nats.stop)
        kube = await stack.enter_async_context(connected(KubeSettings(kubeconfig=kubeconfig), clock))
        await install_crds(kube, clock)
        await kube.apply(NAMESPACES, {"metadata": {"name": NAMESPACE}}, manager="bench")
        environment = {"GRYVIA_KUBE_KUBECONFIG": str(kubeconfig), "GRYVIA_NATS_URL": BusSettings(url=nats.url).url}
        costs = [Cost(nats.pid or 0)]
        ports = {name: folder / f"{name}.port" for name in ("bridge", "jobs")}
        for name in ("bridge", "jobs"):
            running = await stack.enter_async_context(
                process(
                    "-m", f"gryvia_{name}", log=folder / f"{name}.log", GRYVIA_PORT_FILE=str(ports[name]), **environment
                )
            )
            costs.append(Cost(running.pid))
        await _until_working(kube)
        cpu = sum(cost.seconds() for cost in costs)
        writes = await written(ports["jobs"])
        first = time.perf_counter()
        await in_parallel(CONNECTIONS, [_creation(kube, number) for number in range(objects)])
        last = time.perf_counter()
        while not await settled(kube, objects):
            await asyncio.sleep(0.2 if objects <= 1000 else 1.0)
        end = time.perf_counter()
        cpu = sum(cost.seconds() for cost in costs) - cpu
        each = [cost.seconds() for cost in costs]
        writes = await written(ports["jobs"]) - writes
    # The services are gone: the bare writer has the server for itself.
    async with connected(KubeSettings(kubeconfig=kubeconfig), clock) as kube:
        ratio = (end - first) / await bare(kube, objects)
        await clear(kube)
    prefix, where = "jobs", {"objects": objects, "cluster": cluster}
    milliseconds = cpu * 1000 / objects
    detail = {"nats": round(each[0], 2), "bridge": round(each[1], 2), "jobs": round(each[2], 2)}
    return [
        _line(f"{prefix}-settled", end - last, "s after the last create", seconds_goal(objects), **where),
        _line(f"{prefix}-cpu", milliseconds, "ms of our CPU an object", CPU_GOAL, **where, seconds=detail),
        _line(f"{prefix}-writes", writes / objects, "writes an object", WRITES_GOAL, **where),
        _line(f"{prefix}-against-bare", ratio, "times a bare writer", RATIO_GOAL, **where),
    ]


def _creation(kube: Kube, number: int) -> Work:
    async def run() -> None:
        await kube.create(AI_JOB.resource, job(number))

    return run


async def written(port_file: Path) -> float:
    """Every request of the service so far that is no read and no log."""
    url = f"http://127.0.0.1:{int(port_file.read_text())}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        families = text_string_to_metric_families(await answer.text())
        samples = [sample for family in families for sample in family.samples]
    reads = ("get", "list", "logs", "watch")
    return sum(s.value for s in samples if s.name == "rest_client_requests_total" and s.labels["method"] not in reads)


async def _until_working(kube: Kube) -> None:
    """One job through the whole circle, so that no start-up is measured."""
    probe = job(0)
    probe["metadata"]["name"] = "probe"
    await kube.create(AI_JOB.resource, probe)
    while not (await kube.get(AI_JOB.resource, NAMESPACE, "probe")).get("status"):
        await asyncio.sleep(0.05)
    await clear(kube)


def _line(bench: str, value: float, unit: str, goal: float, **more: object) -> dict[str, object]:
    return {"bench": bench, "value": round(value, 2), "unit": unit, "goal": goal, "holds": value <= goal, **more}


def run(counts: Iterable[int] = COUNTS) -> Iterable[dict[str, object]]:
    async def on_devcluster(objects: int, folder: Path) -> list[dict[str, object]]:
        async with devcluster(folder) as kubeconfig:
            return await measure(objects, kubeconfig, folder, "devcluster")

    def on_real(objects: int, folder: Path) -> list[dict[str, object]]:
        with RealCluster(folder / "real", controllers=False) as cluster:
            return asyncio.run(measure(objects, cluster.kubeconfig, folder, "kube-apiserver"))

    for objects in counts:
        with tempfile.TemporaryDirectory() as folder:
            yield from asyncio.run(on_devcluster(objects, Path(folder)))
        with tempfile.TemporaryDirectory() as folder:
            try:
                yield from on_real(objects, Path(folder))
            except NotBuilt as missing:
                print(f"not measured on a real API server: {missing}", file=sys.stderr)


if __name__ == "__main__":
    for line in run([int(text) for text in sys.argv[1:]] or COUNTS):
        print(json.dumps(line), flush=True)
