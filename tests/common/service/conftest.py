"""A cluster, a bridge and a bus, all real and without a node: what a service meets, but for pods that run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gryvia_bridge.__main__ import run as run_bridge_service
from gryvia_bridge.settings import BridgeSettings
from gryvia_cli.platform.crds import install_crds
from gryvia_common.bus.settings import BusSettings
from gryvia_common.clock import SystemClock
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings

LEASE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where everything is, and an admin's client. `nats` is for the service `cards`, `nats_admin` for the test."""

    cluster: DevCluster
    kube: Kube
    kube_settings: KubeSettings
    nats: BusSettings
    nats_admin: BusSettings


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float = 15.0) -> None:
    """Look again and again; the bound is for a hang, not for a delay."""
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.01)


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., Awaitable[None]]:
    return until


@pytest.fixture
async def surroundings(
    tmp_path: Path, nats_url: str, nats_as: Callable[[str], BusSettings]
) -> AsyncIterator[Surroundings]:
    settings = Settings(data_dir=tmp_path / "cluster", node=False)
    async with DevCluster(settings) as cluster:
        kubeconfig = tmp_path / "kubeconfig"
        await cluster.write_kubeconfig(kubeconfig)
        kube_settings = KubeSettings(kubeconfig=kubeconfig)
        kube = await Kube.connect(kube_settings, user_agent="test", clock=SystemClock())
        await install_crds(kube, SystemClock())
        bridge_settings = BridgeSettings(
            kube=kube_settings, nats=nats_as("bridge"), bridge_lease=False, lease_seconds=LEASE_SECONDS
        )
        bridge = asyncio.create_task(run_bridge_service(bridge_settings, SystemClock()))
        try:
            yield Surroundings(cluster, kube, kube_settings, nats_as("cards"), BusSettings(url=nats_url))
        finally:
            bridge.cancel()
            [ended] = await asyncio.gather(bridge, return_exceptions=True)
            assert isinstance(ended, asyncio.CancelledError), ended
            await kube.close()
