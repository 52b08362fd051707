"""The services themselves on a real API server: etcd, kube-apiserver and kube-controller-manager, one of each a session.

There under `make test-kube` (GRYVIA_TEST_KUBE=1) only; a missing program is a failure then. Each service has the rights of its own
ServiceAccount and NATS user and no others (platform.py); pods are run by the simulated node, which also serves their logs as a
kubelet does.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tools.realcluster import RealCluster
from tools.realcluster.http import Http
from tools.realcluster.kubelet import Tls
from tools.realcluster.node import Fate, SimulatedNode

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.bus_users import make_users
from gryvia_cli.platform.crds import connected, install_crds
from gryvia_common.clock import SystemClock
from gryvia_common.kube.client import Kube, KubeSettings
from gryvia_common.kube.objects import Json

from .platform import NAMESPACE, Services, restricted_accounts, until


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


@pytest.fixture(scope="session")
def accounts(cluster: RealCluster) -> Iterator[Mapping[str, Path]]:
    with restricted_accounts(cluster) as accounts:
        yield accounts


@pytest.fixture
async def services(
    accounts: Mapping[str, Path], kube: Kube, node: SimulatedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Services]:
    """All in this process, ready."""
    async with _running(accounts, tmp_path, monkeypatch, processes=False) as services:
        yield services


@pytest.fixture
async def service_processes(
    accounts: Mapping[str, Path], kube: Kube, node: SimulatedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Services]:
    """Each in a process of its own, ready."""
    async with _running(accounts, tmp_path, monkeypatch, processes=True) as services:
        yield services


@asynccontextmanager
async def _running(
    accounts: Mapping[str, Path], folder: Path, monkeypatch: pytest.MonkeyPatch, *, processes: bool
) -> AsyncIterator[Services]:
    monkeypatch.setenv("GRYVIA_BRIDGE_LEASE_NAMESPACE", NAMESPACE)
    nats = NatsServer(folder / "nats", config=make_users(folder / "bus"))
    await nats.start(supervise=False)
    services = Services(accounts, nats, folder / "bus", folder, processes)
    try:
        await services.start()
        yield services
    finally:
        await services.stop()
        await nats.stop()
    assert services.troubles == {}
    assert services.violations() == []
