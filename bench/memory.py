"""What a service process weighs: resident memory of the job service, as a process of its own.

idle: connected, with nothing to do. objects: with ten thousand settled GryviaAIJobs in its cache. growth: how much more after 200,000
changes of them than after the first 40,000, in per cent; the allocator's own growth is over by then. The changes are published
straight into the bus, as a bridge would; the API server is not asked for anything.
"""

from __future__ import annotations

import asyncio
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterable, Set
from contextlib import asynccontextmanager
from pathlib import Path

from bench.latency import NOBODY, publish, stored
from bench.programs import python, resident, samples, text_of
from bench.results import Line, line, run_measure
from gryvia_cli.nats_server import NatsServer
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.bus.objects import object_headers
from gryvia_common.bus.subjects import sync_subject
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import JOBS, PODS, PVCS, SERVICES, STATEFUL_SETS
from gryvia_common.runtime.logs import configure_logs

NAMES = ("service-memory",)
OBJECTS, CHANGES, SETTLED = 10_000, 200_000, 40_000
IDLE_GOAL, OBJECTS_GOAL, GROWTH_GOAL = 95.0, 300.0, 5.0
AT_ONCE = 500
WATCHED = ("workqueue_adds_total", "workqueue_depth", "gryvia_cached_objects")


def ended(number: int) -> Json:
    """A job that has succeeded and is settled: a pass about it wants nothing."""
    obj: Json = stored(number)
    at = "2026-03-01T12:01:00Z"
    over = {"type": "PodsReady", "status": "False", "reason": "Succeeded", "message": "no pod is to run any more"}
    obj["status"] = {
        "phase": "Succeeded",
        "startTime": "2026-03-01T12:00:10Z",
        "completionTime": at,
        "gpusAllocated": 0,
        "replicasReady": 0,
        "retries": 0,
        "observedGeneration": 1,
        "metrics": {"values": {"loss": 0.25, "accuracy": 0.93}, "loss": 0.25},
        "conditions": [{**over, "lastTransitionTime": at, "observedGeneration": 1}],
    }
    return obj


async def measure() -> tuple[float, float, float]:
    """MB idle, MB with the objects, per cent of growth."""
    with tempfile.TemporaryDirectory() as name:
        folder, nats = Path(name), NatsServer(Path(name) / "nats")
        await nats.start(supervise=False)
        bus = await Bus.connect(BusSettings(url=nats.url), name="bench", clock=SystemClock())
        try:
            await bus.ensure_streams()
            for resource in (AI_JOB.resource, JOBS, PODS, PVCS, SERVICES, STATEFUL_SETS):
                headers = object_headers("cluster", 1, "applied") | {"Nats-Msg-Id": resource.plural}
                await bus.publish(sync_subject(resource.plural), b"", headers)
            async with jobs_service(folder, nats.url) as (process, port):
                await asyncio.sleep(3.0)
                idle = resident(process.pid)
                await changes(bus, 0, OBJECTS)
                await until_quiet(port, OBJECTS)
                filled = resident(process.pid)
                await changes(bus, OBJECTS, SETTLED)
                await until_quiet(port, OBJECTS)
                before = resident(process.pid)
                await changes(bus, SETTLED, CHANGES)
                await until_quiet(port, OBJECTS)
                after = resident(process.pid)
        finally:
            await bus.close()
            await nats.stop()
    return idle, filled, (after - before) / before * 100


@asynccontextmanager
async def jobs_service(folder: Path, nats: str) -> AsyncIterator[tuple[Process, int]]:
    """The process and the port of its health."""
    kubeconfig, port_file = folder / "kubeconfig", folder / "port"
    kubeconfig.write_text(NOBODY)
    environment = {
        "GRYVIA_KUBE_KUBECONFIG": str(kubeconfig),
        "GRYVIA_NATS_URL": nats,
        "GRYVIA_PORT_FILE": str(port_file),
    }
    async with python("-m", "gryvia_jobs", log=folder / "jobs.log", **environment) as process:
        yield process, int(await text_of(port_file, process))


async def changes(bus: Bus, first: int, last: int) -> None:
    """Version `n + 1` of the object `n modulo OBJECTS`, as fast as the bus takes them."""
    for start in range(first, last, AT_ONCE):
        await asyncio.gather(*(publish(bus, ended(n % OBJECTS), n + 1) for n in range(start, start + AT_ONCE)))


async def until_quiet(port: int, objects: int) -> None:
    """Everything has been received and looked at."""
    before = -1.0
    while True:
        await asyncio.sleep(1.0)
        found = {sample.name: sample.value for sample in await samples(port) if sample.name in WATCHED}
        adds, depth = found["workqueue_adds_total"], found["workqueue_depth"]
        if found["gryvia_cached_objects"] >= objects and depth == 0 and adds == before:
            return
        before = adds


def run(wanted: Set[str] = frozenset(NAMES)) -> Iterable[Line]:
    configure_logs(level="error")
    idle, filled, growth = asyncio.run(measure())
    yield line(NAMES[0], idle, "MB", IDLE_GOAL, {"what": "idle"}, digits=1)
    yield line(NAMES[0], filled, "MB", OBJECTS_GOAL, {"what": "objects", "objects": OBJECTS}, digits=1)
    yield line(NAMES[0], growth, "% from change 40,000 to 200,000", GROWTH_GOAL, {"what": "growth"}, digits=1)


if __name__ == "__main__":
    run_measure(run())
