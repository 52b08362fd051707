"""The registry itself against devcluster, with a bridge and a bus: races that only a real loop has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gryvia_bridge.__main__ import run as run_bridge_service
from gryvia_bridge.settings import BridgeSettings
from gryvia_cli.platform.crds import install_crds
from gryvia_common.bus.settings import BusSettings
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings
from gryvia_registry.controller import run as run_registry
from gryvia_registry.settings import RegistrySettings

from .race import entries, entry, race


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """The bound is for a hang, not for a delay."""
    async with asyncio.timeout(100):
        while not await condition():
            await asyncio.sleep(0.05)


@dataclass
class Site:
    """A cluster without controllers or pods, a bridge, and what the registry needs to run."""

    cluster: DevCluster
    kube: Kube
    kube_settings: KubeSettings
    nats: BusSettings
    folder: Path
    replicas: int = 0

    @asynccontextmanager
    async def registry(self, replicas: int = 1) -> AsyncIterator[Callable[[], Awaitable[dict[str, int]]]]:
        """That many replicas; yields a function that says how many requests they made, by verb."""
        ports = []
        async with AsyncExitStack() as stack:
            for _ in range(replicas):
                self.replicas += 1
                ports.append(self.folder / f"{self.replicas}.port")
                settings = RegistrySettings(
                    kube=self.kube_settings,
                    nats=self.nats,
                    replica=f"r{self.replicas}",
                    lease_seconds=3,
                    port_file=ports[-1],
                )
                task = asyncio.create_task(run_registry(settings, SystemClock()))
                stack.push_async_callback(asyncio.gather, task, return_exceptions=True)
                stack.callback(task.cancel)

            async def requests() -> dict[str, int]:
                total: dict[str, int] = {}
                async with aiohttp.ClientSession() as session:
                    for port in ports:
                        answer = await session.get(f"http://127.0.0.1:{port.read_text().strip()}/metrics")
                        for family in text_string_to_metric_families(await answer.text()):
                            for sample in family.samples:
                                if sample.name == "rest_client_requests_total":
                                    verb = sample.labels.get("verb") or sample.labels.get("method", "")
                                    total[verb] = total.get(verb, 0) + int(sample.value)
                return total

            yield requests

    def version(self) -> int:
        """The cluster's own count of changes."""
        return int(self.cluster.api.list(self.cluster.api.resource("", "configmaps"))[1])

    async def quiet(self) -> None:
        """Until nothing has changed for a second."""
        seen = -1
        while (now := self.version()) != seen:
            seen = now
            await asyncio.sleep(1.0)


@pytest.fixture
async def site(tmp_path: Path, nats_as: Callable[[str], BusSettings], nats_url: str) -> AsyncIterator[Site]:
    async with DevCluster(Settings(data_dir=tmp_path / "cluster", node=False, controllers=False)) as cluster:
        kubeconfig = tmp_path / "kubeconfig"
        await cluster.write_kubeconfig(kubeconfig)
        kube_settings = KubeSettings(kubeconfig=kubeconfig)
        kube = await Kube.connect(kube_settings, user_agent="test", clock=SystemClock())
        await install_crds(kube, SystemClock())
        bridge_settings = BridgeSettings(kube=kube_settings, nats=nats_as("bridge"), bridge_lease=False)
        bridge = asyncio.create_task(run_bridge_service(bridge_settings, SystemClock()))
        try:
            yield Site(cluster, kube, kube_settings, nats_as("registry"), tmp_path)
        finally:
            bridge.cancel()
            await asyncio.gather(bridge, return_exceptions=True)
            await kube.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("replicas", [1, 3])
async def test_a_hundred_promotions_at_once_leave_one_in_production_and_a_whole_history(
    site: Site, replicas: int
) -> None:
    async with site.registry(replicas) as requests:
        promoted = await race(site.kube, "default", until)
        asked = await requests()
        assert promoted >= 2
        assert sum(asked.values()) < 3000, asked
        await site.quiet()
        before = site.version()
        async with site.registry():
            await asyncio.sleep(1.0)
        assert site.version() == before, "a settled family causes no write, also when a replica joins and leaves"


async def test_an_entry_that_waits_is_looked_at_when_another_change_makes_room(site: Site) -> None:
    """Woken by the record and by the production entry, not by a clock."""

    def of(**spec: Any) -> dict[str, Any]:
        return {"stage": "staging", "promotionPolicy": {"metric": "acc"}, **spec}

    async def stage(name: str) -> str:
        return str((await entries(site.kube, "default"))[name]["spec"]["stage"])

    async def decided(name: str, reason: str) -> bool:
        found: list[Json] = ((await entries(site.kube, "default"))[name].get("status") or {}).get("conditions", [])
        return any(one["type"] == "PromotionGate" and one["reason"] == reason for one in found)

    async def is_production(name: str) -> bool:
        return await stage(name) == "production"

    async with site.registry():
        await site.kube.create(MODEL_REGISTRY.resource, entry("good", "default", **of(metadata={"acc": "0.9"})))
        await until(lambda: is_production("good"))
        await site.kube.create(MODEL_REGISTRY.resource, entry("fair", "default", **of(metadata={"acc": "0.5"})))
        await until(lambda: decided("fair", "NotBetter"))
        await site.kube.delete(MODEL_REGISTRY.resource, "default", "good")
        await until(lambda: is_production("fair"))


async def test_what_one_entrys_pass_writes_wakes_the_others_of_the_same_replica(site: Site) -> None:
    policy = {"metric": "acc"}

    async def says(name: str, type: str, words: str) -> bool:
        found: list[Json] = ((await entries(site.kube, "default"))[name].get("status") or {}).get("conditions", [])
        return any(one["type"] == type and words in one["message"] for one in found)

    async with site.registry():
        await site.kube.create(
            MODEL_REGISTRY.resource, entry("a", "default", stage="production", metadata={"acc": "0.5"})
        )
        await until(lambda: says("a", "InProduction", "change 1 of the family"))
        low = entry("b", "default", stage="staging", metadata={"acc": "0.4"}, promotionPolicy=policy)
        await site.kube.create(MODEL_REGISTRY.resource, low)
        await until(lambda: says("b", "PromotionGate", "0.5 of a"))
        high = entry("c", "default", stage="staging", metadata={"acc": "0.9"}, promotionPolicy=policy)
        await site.kube.create(MODEL_REGISTRY.resource, high)
        await until(lambda: says("a", "InProduction", "c took its place"))
        await until(lambda: says("b", "PromotionGate", "0.9 of c"))
