"""How long from a change of an object until a service's pass about it begins, on the whole way: API server, bridge, NATS, service.

change-to-pass: p50 and p99 at 50 changes a second, from the moment the change is sent to the API server (its own write is in
it) to the first line of decide. live-edit: the same for an edit that meets the start-up passes of ten thousand objects, from its
publication on the bus. API server, bridge and NATS are processes of their own; the service runs here, so that one clock counts.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import orjson

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.crds import connected, install_crds
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.bus.objects import object_headers
from gryvia_common.bus.subjects import object_subject, partition_of, sync_subject
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB, GryviaAIJobSpec, GryviaAIJobStatus
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json
from gryvia_common.runtime.controller import Controller
from gryvia_common.runtime.plan import Plan
from gryvia_common.runtime.service import Service, run_service
from gryvia_common.runtime.settings import ProcessSettings
from gryvia_common.runtime.world import Object, World

NAMES = ("change-to-pass", "live-edit")
CHANGES, RATE = 500, 50.0
OBJECTS = 10_000
P50_GOAL, P99_GOAL, EDIT_GOAL = 5.0, 25.0, 100.0

Job = Object[GryviaAIJobSpec, GryviaAIJobStatus]
Seen = Callable[[Job], None]


def controller(seen: Seen) -> Controller[GryviaAIJobSpec, GryviaAIJobStatus]:
    """Looks, and wants nothing."""

    def decide(job: Job, world: World, now: datetime) -> Plan:
        seen(job)
        return Plan()

    return Controller(kind=AI_JOB, decide=decide, invalid=lambda raw, message, now: Plan())


def manifest(number: int) -> Json:
    return {
        "apiVersion": AI_JOB.resource.api_version,
        "kind": AI_JOB.name,
        "metadata": {"name": f"job-{number:05}", "namespace": "default"},
        "spec": {"type": "training", "gpus": 0, "image": "python:3.11-slim", "args": ["0"]},
    }


@asynccontextmanager
async def program(*command: str, **environment: str) -> AsyncIterator[None]:
    """Ended with the block."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, *command, env={"PATH": "/usr/bin:/bin", **environment}, stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        yield
    finally:
        started.terminate()
        await started.wait()


@asynccontextmanager
async def service(seen: Seen, kube: KubeSettings, nats: str) -> AsyncIterator[None]:
    settings = ProcessSettings(kube=kube, nats=BusSettings(url=nats), replica="bench")
    task = asyncio.create_task(run_service(Service("bench", (controller(seen),)), settings, SystemClock()))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def change_to_pass() -> list[float]:
    """Milliseconds of each change."""
    sent: dict[str, float] = {}
    took: list[float] = []

    def seen(job: Job) -> None:
        at = sent.pop((job.spec.args or [""])[0], None)
        if at is not None:
            took.append((time.perf_counter() - at) * 1000)

    with tempfile.TemporaryDirectory() as name:
        folder, nats = Path(name), NatsServer(Path(name) / "nats")
        await nats.start(supervise=False)
        kubeconfig = folder / "kubeconfig"
        cluster = (
            "-m",
            "gryvia_devcluster",
            "--data",
            f"{folder}/cluster",
            "--kubeconfig",
            f"{kubeconfig}",
            "--no-node",
        )
        environment = {"GRYVIA_KUBE_KUBECONFIG": f"{kubeconfig}", "GRYVIA_NATS_URL": nats.url, "HOME": name}
        async with program(*cluster):
            while not kubeconfig.exists() or not kubeconfig.read_text().endswith("\n"):
                await asyncio.sleep(0.02)
            settings = KubeSettings(kubeconfig=kubeconfig)
            async with connected(settings, SystemClock()) as kube:
                await install_crds(kube, SystemClock())
                async with program("-m", "gryvia_bridge", **environment), service(seen, settings, nats.url):
                    for number in range(50):
                        await kube.create(AI_JOB.resource, manifest(number))
                    warm = asyncio.get_running_loop().time() + 10
                    number = 0
                    while len(took) < 20 and asyncio.get_running_loop().time() < warm:
                        number += 1
                        await _edit(kube, number, sent)
                        await asyncio.sleep(0.05)
                    await asyncio.sleep(0.5)
                    took.clear()
                    sent.clear()
                    for change in range(CHANGES):
                        next_at = asyncio.get_running_loop().time() + 1 / RATE
                        await _edit(kube, number + 1 + change, sent)
                        await asyncio.sleep(max(next_at - asyncio.get_running_loop().time(), 0))
                    await asyncio.sleep(0.5)
        await nats.stop()
    return took


async def _edit(kube: object, number: int, sent: dict[str, float]) -> None:
    mark = f"{number}"
    sent[mark] = time.perf_counter()
    await kube.patch(AI_JOB.resource, "default", f"job-{number % 50:05}", {"spec": {"args": [mark]}})  # type: ignore[attr-defined]


async def publish(bus: Bus, obj: Json, version: int) -> None:
    """As the bridge does, without its compare-and-set."""
    meta = obj["metadata"]
    meta["resourceVersion"] = str(version)
    subject = object_subject(AI_JOB.plural, partition_of("default", meta["name"]), "default", meta["name"])
    await bus.publish(subject, orjson.dumps(obj), object_headers(meta["uid"], version, "applied"))


def stored(number: int) -> Json:
    obj = manifest(number)
    obj["metadata"].update(uid=f"uid-{number}", generation=1, creationTimestamp="2026-03-01T12:00:00Z")
    return obj


async def live_edit(objects: int = OBJECTS) -> list[float]:
    """Milliseconds from publication to pass of edits that meet the start-up passes."""
    passes = 0
    took: list[float] = []
    sent: dict[str, float] = {}

    def seen(job: Job) -> None:
        nonlocal passes
        passes += 1
        at = sent.pop((job.spec.args or [""])[0], None)
        if at is not None:
            took.append((time.perf_counter() - at) * 1000)

    with tempfile.TemporaryDirectory() as name:
        nats = NatsServer(Path(name) / "nats")
        await nats.start(supervise=False)
        bus = await Bus.connect(BusSettings(url=nats.url), name="bench", clock=SystemClock())
        try:
            await bus.ensure_streams()
            for first in range(0, objects, 500):
                await asyncio.gather(*(publish(bus, stored(n), n + 1) for n in range(first, first + 500)))
            marker = object_headers("cluster", 1, "applied")
            await bus.publish(sync_subject(AI_JOB.plural), b"", marker)
            kubeconfig = Path(name) / "kubeconfig"
            kubeconfig.write_text(NOBODY)
            async with service(seen, KubeSettings(kubeconfig=kubeconfig), nats.url):
                while not passes:
                    await asyncio.sleep(0.001)
                edits = 0
                while passes < objects * 0.9:
                    obj = stored(objects - 1 - edits)
                    mark = f"edit-{edits}"
                    obj["spec"]["args"] = [mark]
                    sent[mark] = time.perf_counter()
                    await publish(bus, obj, objects + 1 + edits)
                    edits += 1
                    await asyncio.sleep(0.02)
                await asyncio.sleep(1.0)
        finally:
            await bus.close()
            await nats.stop()
    return took


NOBODY = """apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: none, user: {}}]
"""


def run() -> Iterable[dict[str, object]]:
    took = sorted(asyncio.run(change_to_pass()))
    for share, goal in ((50, P50_GOAL), (99, P99_GOAL)):
        value = statistics.quantiles(took, n=100)[share - 1]
        yield _line("change-to-pass", value, f"ms (p{share})", goal, changes=len(took))
    edits = asyncio.run(live_edit())
    yield _line("live-edit", max(edits), "ms (slowest)", EDIT_GOAL, edits=len(edits))


def _line(bench: str, value: float, unit: str, goal: float, **more: object) -> dict[str, object]:
    return {"bench": bench, "value": round(value, 2), "unit": unit, "goal": goal, "holds": value <= goal, **more}


if __name__ == "__main__":
    for line in run():
        print(json.dumps(line), flush=True)
