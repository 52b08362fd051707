"""The services themselves on a real API server: etcd, kube-apiserver and kube-controller-manager, one of each a session.

There under `make test-kube` (GRYVIA_TEST_KUBE=1) only; a missing program is a failure then. The services run in this
process, on a NATS server of the test's own; pods are run by the simulated node, which also serves their logs as a kubelet does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tools.realcluster import RealCluster
from tools.realcluster.http import Http
from tools.realcluster.kubelet import Tls
from tools.realcluster.node import Fate, SimulatedNode

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.crds import connected, install_crds
from gryvia_cli.platform.inprocess import run_in_process
from gryvia_cli.platform.services import SERVICES
from gryvia_common.bus.settings import BusSettings
from gryvia_common.clock import SystemClock
from gryvia_common.errors import Gone
from gryvia_common.kube.client import Kube, KubeSettings
from gryvia_common.kube.objects import Json


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("GRYVIA_TEST_KUBE") == "1":
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip("on a real API server: make test-kube"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("real")) as cluster:
        yield cluster


@pytest.fixture
async def kube(cluster: RealCluster) -> AsyncIterator[Kube]:
    """An admin's client; all CRDs are there."""
    async with connected(KubeSettings(kubeconfig=cluster.kubeconfig), SystemClock()) as kube:
        await install_crds(kube, SystemClock())
        yield kube


@pytest.fixture
async def namespace(cluster: RealCluster) -> AsyncIterator[str]:
    async with Http(cluster.url, cluster.token, cluster.ca) as api:
        created = await api.ok("POST", "/api/v1/namespaces", {"metadata": {"generateName": "kube-"}})
        name: str = created["metadata"]["name"]
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        await until(lambda: api("GET", account), lambda answer: answer.code == 200)
        yield name
        await api("DELETE", f"/api/v1/namespaces/{name}")


@dataclass(slots=True)
class Fates:
    """What the simulated node does with the next pods: `choose` can be replaced by a test."""

    choose: Callable[[Json, int], Fate] = lambda pod, attempt: Fate(run=0.2)

    def __call__(self, pod: Json, attempt: int) -> Fate:
        return self.choose(pod, attempt)


@pytest.fixture
def fates() -> Fates:
    return Fates()


@pytest.fixture
async def node(cluster: RealCluster, fates: Fates) -> AsyncIterator[SimulatedNode]:
    tls = Tls(cluster.ca, cluster.ca.with_suffix(".key"))
    async with (
        Http(cluster.url, cluster.token, cluster.ca) as api,
        SimulatedNode(api, fates, tls=tls) as node,
    ):
        yield node


@dataclass(slots=True)
class Services:
    """All services, in this process."""

    kubeconfig: Path
    nats_url: str
    folder: Path
    troubles: dict[str, str] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Until each says it is ready."""
        for service in SERVICES:
            work = run_in_process(
                service,
                kubeconfig=self.kubeconfig,
                nats=BusSettings(url=self.nats_url),
                port_file=self._port_file(service.name),
                troubles=self.troubles,
                clock=SystemClock(),
            )
            self._tasks.append(asyncio.create_task(work, name=service.name))
        async with aiohttp.ClientSession() as session:
            for service in SERVICES:
                await until(lambda name=service.name: self._ready(session, name), bool)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for service in SERVICES:
            self._port_file(service.name).unlink(missing_ok=True)

    def _port_file(self, name: str) -> Path:
        return self.folder / f"{name}.port"

    async def _ready(self, session: aiohttp.ClientSession, name: str) -> bool:
        with suppress(OSError, ValueError, aiohttp.ClientError):
            port = int(self._port_file(name).read_text())
            async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                return answer.status == 200
        return False


@pytest.fixture
async def services(
    cluster: RealCluster, kube: Kube, node: SimulatedNode, own_nats: NatsServer, tmp_path: Path
) -> AsyncIterator[Services]:
    services = Services(cluster.kubeconfig, own_nats.url, tmp_path)
    await services.start()
    yield services
    await services.stop()
    assert services.troubles == {}


async def until(read: Callable[[], Awaitable[Any]], wanted: Callable[[Any], Any], *, seconds: float = 60) -> Any:
    """The first state that is as wanted (what is not there is not); the bound is for a hang, and its error shows the last."""
    state: Any = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                with suppress(Gone):
                    if wanted(state := await read()):
                        return state
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        last = state.get("status") if isinstance(state, dict) else state
        raise AssertionError(f"not as wanted after {seconds:.0f} s: {last}") from error
