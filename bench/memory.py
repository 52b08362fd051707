"""What a service process weighs: resident memory of the job service, as a process of its own.

idle: connected, with nothing to do. objects: with ten thousand settled GryviaAIJobs in its cache. growth: how much more after 200,000
changes of them than after the first 40,000, in per cent; the allocator's own growth is over by then. The changes are published
straight into the bus, as a bridge would; the API server is not asked for anything.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from bench.latency import NOBODY, publish, stored  # type: ignore[import-not-found]  # bench is a folder, no package

from gryvia_cli.nats_server import NatsServer
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.bus.objects import object_headers
from gryvia_common.bus.subjects import sync_subject
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import JOBS, PODS, PVCS, SERVICES, STATEFUL_SETS

NAMES = ("service-memory",)
OBJECTS, CHANGES, SETTLED = 10_000, 200_000, 40_000
IDLE_GOAL, OBJECTS_GOAL, GROWTH_GOAL = 95.0, 300.0, 5.0
AT_ONCE = 500


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
        **os.environ,
        "GRYVIA_KUBE_KUBECONFIG": str(kubeconfig),
        "GRYVIA_NATS_URL": nats,
        "GRYVIA_PORT_FILE": str(port_file),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gryvia_jobs", env=environment, stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        while not port_file.exists() or not port_file.read_text().endswith("\n"):
            await asyncio.sleep(0.05)
        yield process, int(port_file.read_text())
    finally:
        process.terminate()
        await process.wait()


async def changes(bus: Bus, first: int, last: int) -> None:
    """Version `n + 1` of the object `n modulo OBJECTS`, as fast as the bus takes them."""
    for start in range(first, last, AT_ONCE):
        await asyncio.gather(*(publish(bus, ended(n % OBJECTS), n + 1) for n in range(start, start + AT_ONCE)))


async def until_quiet(port: int, objects: int) -> None:
    """Everything has been received and looked at."""
    before = -1.0
    async with aiohttp.ClientSession() as session:
        while True:
            await asyncio.sleep(1.0)
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                values = {
                    line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
                    for line in (await answer.text()).splitlines()
                    if not line.startswith("#")
                }
            adds = values['workqueue_adds_total{controller="gryviaaijob",name="gryviaaijob"}']
            depth = values['workqueue_depth{controller="gryviaaijob",name="gryviaaijob"}']
            if values["gryvia_cached_objects"] >= objects and depth == 0 and adds == before:
                return
            before = adds


def resident(pid: int) -> float:
    """MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def run() -> Iterable[dict[str, object]]:
    idle, filled, growth = asyncio.run(measure())
    yield _line("idle", idle, "MB", IDLE_GOAL)
    yield _line("objects", filled, "MB", OBJECTS_GOAL, objects=OBJECTS)
    yield _line("growth", growth, "% from change 40,000 to 200,000", GROWTH_GOAL)


def _line(what: str, value: float, unit: str, goal: float, **more: object) -> dict[str, object]:
    return {
        "bench": "service-memory",
        "what": what,
        "value": round(value, 1),
        "unit": unit,
        "goal": goal,
        "holds": value <= goal,
        **more,
    }


if __name__ == "__main__":
    for line in run():
        print(json.dumps(line), flush=True)
