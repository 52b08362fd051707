"""The registry on a real API server, with its own rights only: the race, the guard, and silence afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.registry.race import entries, entry, race
from tools.realcluster import RealCluster

from gryvia_common.errors import Terminal
from gryvia_common.kinds.families import FAMILY_LABEL, read_family
from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS

from .platform import NAMESPACE, Services
from .platform import until as reached

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:gryvia-registry"


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    await reached(condition, bool, seconds=90)


def requests(cluster: RealCluster) -> list[str]:
    """What the registry has asked, in the API server's own words."""
    return [
        f"{event['verb']} {event['requestURI']}"
        for event in cluster.audit()
        if event["user"].get("username") == ACCOUNT and event["stage"] == "ResponseComplete"
    ]


async def test_a_hundred_promotions_at_once_on_a_real_api_server(
    kube: Kube, services: Services, namespace: str, cluster: RealCluster
) -> None:
    before = len(requests(cluster))
    await race(kube, namespace, until)
    asked = len(requests(cluster)) - before
    assert asked < 3000, asked
    while True:
        seen = len(requests(cluster))
        await asyncio.sleep(2.0)
        if len(requests(cluster)) == seen:
            break
    settled = requests(cluster)
    await asyncio.sleep(3.0)
    assert requests(cluster) == settled, "a settled family asks for nothing"


async def test_a_served_entry_waits_for_its_service_and_a_bad_change_of_family_is_refused(
    kube: Kube, services: Services, namespace: str
) -> None:
    async def conditions(name: str) -> dict[str, Any]:
        found: Json = (await entries(kube, namespace))[name]
        return {one["type"]: one for one in (found.get("status") or {}).get("conditions", [])}

    async def says(name: str, type: str, words: str) -> bool:
        said = (await conditions(name)).get(type)
        return said is not None and words in f"{said['reason']}: {said['message']}"

    async def gone(name: str) -> bool:
        return name not in await entries(kube, namespace)

    await kube.create(MODEL_REGISTRY.resource, entry("v1", namespace, stage="production", aliases=["champion"]))
    service = {
        "apiVersion": "gryvia.io/v1alpha1",
        "kind": "GryviaInferenceService",
        "metadata": {"name": "chat", "namespace": namespace},
        "spec": {"modelRef": "v1", "backend": "vllm"},
    }
    await until(lambda: says("v1", "InProduction", "change 1"))
    await kube.create(INFERENCE_SERVICE.resource, service)
    await until(lambda: says("v1", "ModelServing", "GryviaInferenceService chat is Pending"))

    async def guarded() -> bool:
        return bool((await entries(kube, namespace))["v1"]["metadata"].get("finalizers"))

    await until(guarded)
    await kube.delete(MODEL_REGISTRY.resource, namespace, "v1")
    await until(lambda: says("v1", "DeletionHeld", "served by GryviaInferenceService chat"))
    await kube.create(MODEL_REGISTRY.resource, entry("v2", namespace, stage="production", aliases=["champion"]))
    await until(lambda: says("v1", "InProduction", "Replaced"))
    await kube.patch(INFERENCE_SERVICE.resource, namespace, "chat", {"spec": {"modelRef": "v2"}})
    await until(lambda: gone("v1"))
    [record] = await kube.list(CONFIG_MAPS, namespace, labels=FAMILY_LABEL)
    family = read_family("m", record)
    assert [(term.entry, term.reason) for term in family.terms] == [("v2", ""), ("v1", "Replaced")]
    assert family.aliases["champion"].entry == "v2"
    with pytest.raises(Terminal, match="modelName cannot be changed"):
        await kube.patch(MODEL_REGISTRY.resource, namespace, "v2", {"spec": {"modelName": "other"}})
