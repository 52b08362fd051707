"""The bridge as a process of its own, between an API server that only serves bytes and a real NATS, with 10,000 objects.

bridge-first-cpu: its CPU seconds to publish 10,000 listed objects into an empty stream.
bridge-changes-cpu: its CPU seconds for 10,000 changes, from the bytes of the watch to stored; compare-and-set and headers included.
bridge-memory: its resident memory after both, in MB.
bridge-restart: seconds from start to every type complete with 10,000 objects unchanged (and -cpu, its CPU seconds);
bridge-restart-publishes: what it published then.
bridge-lag-p50 / -p99: milliseconds from a single change's bytes to the message at a subscriber, with 10,000 objects known.

    python -m bench.bridge_throughput [objects]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterable, Set
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from bench.byte_server import ByteServer
from bench.programs import cpu_seconds, python, resident, samples, text_of
from bench.results import Line, line, run_measure
from gryvia_cli.nats_server import NatsServer
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.bus.jetstream import StreamState, stream_state
from gryvia_common.bus.streams import OBJECTS
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.runtime.logs import configure_logs

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


class Bridge:
    """The process under measure."""

    def __init__(self, process: Process, port: int) -> None:
        self._process = process
        self._port = port

    def cpu(self) -> float:
        return cpu_seconds(self._process.pid)

    def megabytes(self) -> float:
        return resident(self._process.pid)

    async def ready(self) -> None:
        """It is the active one, and every type is complete."""
        async with aiohttp.ClientSession() as session:
            while self._process.returncode is None:
                async with session.get(f"http://127.0.0.1:{self._port}/readyz") as answer:
                    body = await answer.json()
                if answer.status == 200 and "types" in body["checks"] and await self._value("bridge_active") == 1:
                    return
                await asyncio.sleep(0.02)
        raise RuntimeError(f"the bridge ended with {self._process.returncode}")

    async def published(self) -> float:
        return await self._value("bridge_published_total")

    async def _value(self, name: str) -> float:
        return sum(sample.value for sample in await samples(self._port) if sample.name == name)


@asynccontextmanager
async def bridge(kube: str, nats: str, folder: Path) -> AsyncIterator[Bridge]:
    kubeconfig, port_file = folder / "kubeconfig", folder / "port"
    kubeconfig.write_text(
        f"clusters: [{{name: c, cluster: {{server: '{kube}'}}}}]\ncontexts: [{{name: x, context: {{cluster: c}}}}]\n"
        "current-context: x\n"
    )
    port_file.unlink(missing_ok=True)
    environment = {
        "GRYVIA_KUBE_KUBECONFIG": str(kubeconfig),
        "GRYVIA_NATS_URL": nats,
        "GRYVIA_PORT_FILE": str(port_file),
        "GRYVIA_BRIDGE_LEASE": "false",
        "GRYVIA_LOG_LEVEL": "warning",
    }
    async with python("-m", "gryvia_bridge", log=folder / "bridge.log", **environment) as process:
        yield Bridge(process, int(await text_of(port_file, process)))


async def _measure(count: int, wanted: Set[str]) -> list[Line]:
    server = ByteServer(count)
    results: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        nats = NatsServer(Path(folder) / "nats")
        await nats.start(supervise=False)
        bus = await Bus.connect(BusSettings(url=nats.url), name="bench", clock=SystemClock())
        try:
            async with server.listening() as kube:
                async with bridge(kube, nats.url, Path(folder)) as first:
                    await first.ready()
                    results.append(line("bridge-first-cpu", first.cpu(), "s", digits=3))
                    if any(name.startswith(("bridge-changes", "bridge-memory")) for name in wanted):
                        results += await _changes(first, server, bus, count)
                    if any(name.startswith("bridge-lag") for name in wanted):
                        results += await _lag(server, bus)
                if any(name.startswith("bridge-restart") for name in wanted):
                    results += await _restart(kube, nats.url, Path(folder), server)
        finally:
            await bus.close()
            await nats.stop()
    return results


async def _changes(bridge: Bridge, server: ByteServer, bus: Bus, count: int) -> list[Line]:
    lines = [server.change(number) for number in range(count)]
    before, began = bridge.cpu(), time.monotonic()
    reached = (await _state(bus)).last_sequence + count
    for start in range(0, count, 50):
        server.watch.put_nowait(b"".join(lines[start : start + 50]))
    while (await _state(bus)).last_sequence < reached:
        await asyncio.sleep(0.02)
    seconds, cpu, memory = time.monotonic() - began, bridge.cpu() - before, bridge.megabytes()
    return [
        line("bridge-changes-cpu", cpu, "s", CPU_GOAL, digits=3),
        line("bridge-changes-wall", seconds, "s", digits=3),
        line("bridge-memory", memory, "MB", MEMORY_GOAL, digits=1),
    ]


async def _lag(server: ByteServer, bus: Bus) -> list[Line]:
    arrived: asyncio.Queue[float] = asyncio.Queue()

    async def receive(_: object) -> None:
        arrived.put_nowait(time.perf_counter())

    subscription = await bus.link.subscribe(f"gryvia.object.{AI_JOB.plural}.>", receive)
    await _state(bus)  # a round trip: from here on the server knows the subscription
    lags = []
    for number in range(SAMPLES):
        change = server.change(number)
        began = time.perf_counter()
        server.watch.put_nowait(change)
        lags.append((await arrived.get() - began) * 1000)
    await subscription.unsubscribe()
    return [
        line("bridge-lag-p50", statistics.median(lags), "ms", digits=3),
        line("bridge-lag-p99", sorted(lags)[int(len(lags) * 0.99)], "ms", digits=3),
    ]


async def _restart(kube: str, nats: str, folder: Path, server: ByteServer) -> list[Line]:
    server.watch = asyncio.Queue()
    began = time.monotonic()
    async with bridge(kube, nats, folder) as again:
        await again.ready()
        seconds = time.monotonic() - began
        cpu = again.cpu()
        published = await again.published()
    return [
        line("bridge-restart", seconds, "s", RESTART_GOAL, digits=3),
        line("bridge-restart-cpu", cpu, "s", digits=3),
        line("bridge-restart-publishes", published, "messages", 0),
    ]


async def _state(bus: Bus) -> StreamState:
    return await stream_state(bus.link, OBJECTS)


def run(wanted: Set[str] = frozenset(NAMES), count: int = OBJECTS_COUNT) -> Iterable[Line]:
    configure_logs(level="error")
    yield from asyncio.run(_measure(count, wanted))


if __name__ == "__main__":
    run_measure(run(count=int(sys.argv[1]) if len(sys.argv) > 1 else OBJECTS_COUNT))
