"""How long from a change of an object until a service's pass about it begins, on the whole way: API server, bridge, NATS, service.

change-to-pass: p50 and p99 at 50 changes a second, from the moment the change is sent to the API server (its own write is in
it) to the first line of decide, on both clusters. live-edit: the same for an edit that meets the start-up passes of ten thousand
objects, from its publication on the bus. API server, bridge and NATS are processes of their own; the service runs here, so that
one clock counts.

    python -m bench.latency
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Set
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import orjson

from bench.clusters import Cluster, on_each
from bench.results import Line, line, run_measure
from bench.services import services
from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.crds import connected
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.bus.objects import object_headers
from gryvia_common.bus.subjects import object_subject, partition_of, sync_subject
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB, GryviaAIJobSpec, GryviaAIJobStatus
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json
from gryvia_common.runtime.controller import Controller
from gryvia_common.runtime.logs import configure_logs
from gryvia_common.runtime.plan import Plan
from gryvia_common.runtime.service import Service, run_service
from gryvia_common.runtime.settings import ProcessSettings
from gryvia_common.runtime.world import Object, World

NAMES = ("change-to-pass", "live-edit")
CHANGES, RATE, WARM = 500, 50.0, 50
EDITED = 50
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
async def service(seen: Seen, kube: KubeSettings, nats: str) -> AsyncIterator[None]:
    settings = ProcessSettings(kube=kube, nats=BusSettings(url=nats), replica="bench")
    task = asyncio.create_task(run_service(Service("bench", (controller(seen),)), settings, SystemClock()))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Edits:
    """Numbered changes of objects, each with the milliseconds from its sending to the first pass that knew of it: one that was
    overtaken by the next of its object has come with that."""

    def __init__(self) -> None:
        self.took: list[float] = []
        self.passes = 0
        self._sent: dict[str, list[tuple[int, float]]] = {}
        self._arrived = asyncio.Event()

    def sent(self, name: str, number: int) -> str:
        """What to write into the object."""
        self._sent.setdefault(name, []).append((number, time.perf_counter()))
        return str(number)

    def seen(self, job: Job) -> None:
        self.passes += 1
        now, waiting = time.perf_counter(), self._sent.get(job.name, [])
        newest = int((job.spec.args or ["0"])[0])
        self.took += [(now - at) * 1000 for number, at in waiting if number <= newest]
        self._sent[job.name] = [(number, at) for number, at in waiting if number > newest]
        self._arrived.set()

    async def arrive(self, count: int) -> None:
        """So many have been seen."""
        while len(self.took) < count:
            self._arrived.clear()
            await self._arrived.wait()


async def change_to_pass(cluster: Cluster, folder: Path) -> list[Line]:
    edits = Edits()
    settings = KubeSettings(kubeconfig=cluster.kubeconfig)
    async with (
        connected(settings, SystemClock()) as kube,
        services(cluster, kube, folder, ("bridge",)) as ours,
        service(edits.seen, settings, ours.nats_url),
    ):
        for number in range(EDITED):
            await kube.create(AI_JOB.resource, manifest(number))
        async with asyncio.timeout(60):
            while not edits.passes:
                await asyncio.sleep(0.02)
            for number in range(1, WARM + 1):
                await _edit(kube, edits, number)
                await edits.arrive(number)
            edits.took.clear()
            for number in range(WARM + 1, WARM + 1 + CHANGES):
                next_at = asyncio.get_running_loop().time() + 1 / RATE
                await _edit(kube, edits, number)
                await asyncio.sleep(max(next_at - asyncio.get_running_loop().time(), 0))
            await edits.arrive(CHANGES)
    where = {"changes": len(edits.took), "cluster": cluster.name}
    shares = statistics.quantiles(edits.took, n=100)
    return [
        line(NAMES[0], shares[share - 1], f"ms (p{share})", goal, where)
        for share, goal in ((50, P50_GOAL), (99, P99_GOAL))
    ]


async def _edit(kube: Kube, edits: Edits, number: int) -> None:
    name = f"job-{number % EDITED:05}"
    await kube.patch(AI_JOB.resource, "default", name, {"spec": {"args": [edits.sent(name, number)]}})


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
    edits = Edits()
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
            async with service(edits.seen, KubeSettings(kubeconfig=kubeconfig), nats.url):
                while not edits.passes:
                    await asyncio.sleep(0.001)
                sent = 0
                while edits.passes < objects * 0.9:
                    obj = stored(objects - 1 - sent)
                    obj["spec"]["args"] = [edits.sent(obj["metadata"]["name"], sent + 1)]
                    await publish(bus, obj, objects + 1 + sent)
                    sent += 1
                    await asyncio.sleep(0.02)
                async with asyncio.timeout(60):
                    await edits.arrive(sent)
        finally:
            await bus.close()
            await nats.stop()
    return edits.took


NOBODY = """apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: none, user: {}}]
"""


def run(wanted: Set[str] = frozenset(NAMES)) -> Iterable[Line]:
    configure_logs(level="error")
    if "change-to-pass" in wanted:
        yield from on_each(change_to_pass)
    if "live-edit" in wanted:
        took = asyncio.run(live_edit())
        yield line("live-edit", max(took), "ms (slowest)", EDIT_GOAL, {"edits": len(took)})


if __name__ == "__main__":
    run_measure(run())
