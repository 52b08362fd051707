"""The bridge as a process of its own, between an API server that only serves bytes and a real NATS, with 10,000 objects.

bridge-first-cpu: its CPU seconds to publish 10,000 listed objects into an empty stream.
bridge-changes-cpu: its CPU seconds for 10,000 changes, from the bytes of the watch to stored; compare-and-set and headers included.
bridge-memory: its resident memory after both, in MB.
bridge-restart: seconds from start to every type complete with 10,000 objects unchanged (and -cpu, its CPU seconds);
bridge-restart-publishes: what it published then.
bridge-lag-p50 / -p99: milliseconds from a single change's bytes to the message at a subscriber, with 10,000 objects known.

    python bench/bridge_throughput.py [objects]
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
from aiohttp import web

from gryvia_cli.nats_server import NatsServer
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.bus.jetstream import StreamState, stream_state
from gryvia_common.bus.streams import OBJECTS
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.objects import Json

NAMES = (
    "bridge-first-cpu",
    "bridge-changes-cpu",
    "bridge-changes-wall",
    "bridge-memory",
    "bridge-lag-p50",
    "bridge-lag-p99",
    "bridge-restart",
    "bridge-restart-cpu",
    "bridge-restart-publishes",
)
OBJECTS_COUNT = 10_000
CPU_GOAL = 2.0
MEMORY_GOAL = 110.0
RESTART_GOAL = 2.0
SAMPLES = 200
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def job(number: int, version: int) -> Json:
    """As a real API server sends one: about 1.5 kB, and as much again of managedFields."""
    name = f"job-{number:05}"
    owned: Json = {f"f:field{i}": {f"f:part{j}": {} for j in range(6)} for i in range(12)}
    return {
        "apiVersion": AI_JOB.resource.api_version,
        "kind": AI_JOB.name,
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"6f1c{number:04x}-8b1d-4c53-9c1e-{number:012x}",
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"team": "vision", "gryvia.io/job": name},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 400},
            "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsV1": owned}],
        },
        "spec": {
            "type": "training",
            "image": "registry.example.com/vision/train:2026.1",
            "command": ["python", "-m", "train"],
            "args": ["--epochs", "90", "--data", "/data/imagenet"],
            "gpus": 4,
            "env": [{"name": f"SETTING_{i}", "value": f"value-{i}-{number}"} for i in range(10)],
        },
        "status": {
            "phase": "Running",
            "message": "3 of 4 workers are ready",
            "observedGeneration": 1,
            "version": version,
        },
    }


class ByteServer:
    """Answers every LIST and WATCH the bridge asks; `send` writes lines into the watch of the jobs."""

    def __init__(self, count: int) -> None:
        self.items = [orjson.dumps(job(number, number + 1)) for number in range(count)]
        self.version = count
        self.watch: asyncio.Queue[bytes] = asyncio.Queue()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.rpartition("/")[2]
        if plural == "kube-system":
            return web.json_response({"metadata": {"name": plural, "uid": "cluster"}})
        if "watch" in request.query:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            while plural == AI_JOB.plural:
                await response.write(await self.watch.get())
            await asyncio.Event().wait()
            return response
        start = int(request.query.get("continue", 0))
        items = self.items if plural == AI_JOB.plural else []
        end = start + int(request.query["limit"])
        meta = {"resourceVersion": str(self.version), "continue": str(end) if end < len(items) else ""}
        head = orjson.dumps({"kind": f"{KINDS.get(plural, 'Unknown')}List", "metadata": meta})[:-1]
        return web.Response(
            body=head + b',"items":[' + b",".join(items[start:end]) + b"]}", content_type="application/json"
        )

    def change(self, number: int) -> bytes:
        self.version += 1
        self.items[number] = orjson.dumps(job(number, self.version))
        return b'{"type":"MODIFIED","object":' + self.items[number] + b"}\n"


KINDS = {
    "gryviaaijobs": "GryviaAIJob",
    "gryviaautotuners": "GryviaAutoTuner",
    "jobs": "Job",
    "pods": "Pod",
    "services": "Service",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "statefulsets": "StatefulSet",
    "configmaps": "ConfigMap",
}


class Bridge:
    """The process under measure."""

    def __init__(self, process: Process, port: int) -> None:
        self._process = process
        self._url = f"http://127.0.0.1:{port}"

    def cpu(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def megabytes(self) -> float:
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE / 1e6

    async def ready(self) -> None:
        async with aiohttp.ClientSession() as session:
            while self._process.returncode is None:
                try:
                    async with session.get(f"{self._url}/readyz") as answer:
                        body = await answer.json()
                        if (
                            answer.status == 200
                            and "types" in body["checks"]
                            and await self.published(session) is not None
                        ):
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.005)
        raise RuntimeError(f"the bridge ended with {self._process.returncode}")

    async def published(self, session: aiohttp.ClientSession) -> float | None:
        """None while it is not the active one."""
        async with session.get(f"{self._url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        if "bridge_active 1.0" not in lines:
            return None
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("bridge_published_total{"))


@asynccontextmanager
async def bridge(kube: str, nats: str, folder: Path) -> AsyncIterator[Bridge]:
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = int(listener.sockets[0].getsockname()[1])
    listener.close()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        f"clusters: [{{name: c, cluster: {{server: '{kube}'}}}}]\ncontexts: [{{name: x, context: {{cluster: c}}}}]\n"
        "current-context: x\n"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "GRYVIA_KUBE_KUBECONFIG": str(kubeconfig),
        "GRYVIA_NATS_URL": nats,
        "GRYVIA_HTTP_PORT": str(port),
        "GRYVIA_BRIDGE_LEASE": "false",
        "GRYVIA_LOG_LEVEL": "warning",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gryvia_bridge", env=environment, stdout=DEVNULL
    )
    try:
        yield Bridge(process, port)
    finally:
        process.terminate()
        await process.wait()


async def _measure(count: int) -> list[Json]:
    server = ByteServer(count)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    kube = f"http://127.0.0.1:{runner.addresses[0][1]}"
    with tempfile.TemporaryDirectory() as folder:
        nats = NatsServer(Path(folder) / "nats")
        await nats.start(supervise=False)
        bus = await Bus.connect(BusSettings(url=nats.url), name="bench", clock=SystemClock())
        try:
            async with bridge(kube, nats.url, Path(folder)) as first:
                results = await _throughput(first, server, bus, count)
            async with aiohttp.ClientSession() as session:
                results += await _restart(kube, nats.url, Path(folder), session, server)
        finally:
            await bus.close()
            await nats.stop()
            await runner.cleanup()
    return results


async def _throughput(bridge: Bridge, server: ByteServer, bus: Bus, count: int) -> list[Json]:
    await bridge.ready()
    listed = bridge.cpu()
    lines = [server.change(number) for number in range(count)]
    before, began = bridge.cpu(), time.monotonic()
    reached = (await _state(bus)).last_sequence + count
    for start in range(0, count, 50):
        server.watch.put_nowait(b"".join(lines[start : start + 50]))
    while (await _state(bus)).last_sequence < reached:
        await asyncio.sleep(0.02)
    seconds, cpu, memory = time.monotonic() - began, bridge.cpu() - before, bridge.megabytes()
    lag = await _lags(server, bus)
    return [
        _result("bridge-first-cpu", listed, "s", None),
        _result("bridge-changes-cpu", cpu, "s", CPU_GOAL),
        _result("bridge-changes-wall", seconds, "s", None),
        _result("bridge-memory", memory, "MB", MEMORY_GOAL),
        _result("bridge-lag-p50", statistics.median(lag), "ms", None),
        _result("bridge-lag-p99", sorted(lag)[int(len(lag) * 0.99)], "ms", None),
    ]


async def _lags(server: ByteServer, bus: Bus) -> list[float]:
    arrived: asyncio.Queue[float] = asyncio.Queue()

    async def receive(_: object) -> None:
        arrived.put_nowait(time.perf_counter())

    subscription = await bus.link.subscribe(f"gryvia.object.{AI_JOB.plural}.>", receive)
    await _state(bus)  # a round trip: from here on the server knows the subscription
    lags = []
    for number in range(SAMPLES):
        line = server.change(number)
        began = time.perf_counter()
        server.watch.put_nowait(line)
        lags.append((await arrived.get() - began) * 1000)
    await subscription.unsubscribe()
    return lags


async def _restart(
    kube: str, nats: str, folder: Path, session: aiohttp.ClientSession, server: ByteServer
) -> list[Json]:
    server.watch = asyncio.Queue()
    began = time.monotonic()
    async with bridge(kube, nats, folder) as again:
        await again.ready()
        seconds = time.monotonic() - began
        cpu = again.cpu()
        published = await again.published(session)
    assert published is not None
    return [
        _result("bridge-restart", seconds, "s", RESTART_GOAL),
        _result("bridge-restart-cpu", cpu, "s", None),
        _result("bridge-restart-publishes", published, "messages", 0),
    ]


async def _state(bus: Bus) -> StreamState:
    return await stream_state(bus.link, OBJECTS)


def _result(bench: str, value: float, unit: str, goal: float | None) -> Json:
    return {
        "bench": bench,
        "value": round(value, 3),
        "unit": unit,
        "goal": goal,
        "holds": goal is None or value <= goal,
    }


def run(count: int = OBJECTS_COUNT) -> Iterable[Json]:
    yield from asyncio.run(_measure(count))


if __name__ == "__main__":
    for line in run(int(sys.argv[1]) if len(sys.argv) > 1 else OBJECTS_COUNT):
        print(json.dumps(line), flush=True)
