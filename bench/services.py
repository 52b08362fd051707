"""NATS and the services under measure as processes of their own, as in a cluster, and what each has used.

The block begins when one job has gone through the whole circle: no start-up is in what is measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from bench.clusters import Cluster
from bench.programs import cpu_seconds, python, samples, text_of
from bench.workload import NAMESPACE, job
from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.crds import install_crds
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.client import Kube
from gryvia_common.kube.resources import NAMESPACES

READS = ("get", "list", "logs", "watch", "ping")
NAMES = ("bridge", "jobs")


@dataclass(frozen=True, slots=True)
class Services:
    """`pids` and `ports` (of /metrics) by name; NATS has no such port."""

    nats_url: str
    pids: Mapping[str, int]
    ports: Mapping[str, int]

    def cpu(self) -> dict[str, float]:
        """Seconds since each began."""
        return {name: cpu_seconds(pid) for name, pid in self.pids.items()}

    async def requests(self, name: str) -> dict[tuple[str, str], float]:
        """By verb and type: everything a service has asked the API server, its leases included."""
        return {
            (sample.labels["method"], sample.labels["resource"]): sample.value
            for sample in await samples(self.ports[name])
            if sample.name == "rest_client_requests_total"
        }

    async def written(self, name: str) -> float:
        """Its requests so far that change something, leases apart."""
        found = await self.requests(name)
        return sum(n for (verb, plural), n in found.items() if verb not in READS and plural != "leases")


@asynccontextmanager
async def services(
    cluster: Cluster,
    kube: Kube,
    folder: Path,
    names: Iterable[str] = NAMES,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Services]:
    """CRDs and namespace are made, NATS and the services started; with the jobs service, until a first job has a status."""
    await install_crds(kube, SystemClock())
    await kube.apply(NAMESPACES, {"metadata": {"name": NAMESPACE}}, manager="bench")
    async with AsyncExitStack() as stack:
        nats = NatsServer(folder / "nats")
        await nats.start(supervise=False)
        stack.push_async_callback(nats.stop)
        pids, ports = {"nats": nats.pid or 0}, {}
        for name in names:
            port_file = folder / f"{name}.port"
            program = await stack.enter_async_context(
                python(
                    "-m",
                    f"gryvia_{name}",
                    log=folder / f"{name}.log",
                    GRYVIA_PORT_FILE=str(port_file),
                    GRYVIA_KUBE_KUBECONFIG=str(cluster.kubeconfig),
                    GRYVIA_NATS_URL=nats.url,
                    **environment,
                )
            )
            pids[name], ports[name] = program.pid, int(await text_of(port_file, program))
        if "jobs" in ports:
            await _first_job(kube)
        yield Services(nats.url, pids, ports)


async def _first_job(kube: Kube) -> None:
    await kube.create(AI_JOB.resource, job("probe"))
    while not (await kube.get(AI_JOB.resource, NAMESPACE, "probe")).get("status"):
        await asyncio.sleep(0.05)
    await kube.delete(AI_JOB.resource, NAMESPACE, "probe")
