"""A hundred entries of one family at once, each better than all before it or worse, and everything that the record ever said.

The record is watched from before the first entry, so every resourceVersion of it is seen. Works on any API server.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson

from gryvia_common.kinds.families import FAMILY_LABEL, Family, read_family
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import CONFIG_MAPS

from .invariants import check_records

ENTRIES = 100


@asynccontextmanager
async def watched_record(kube: Kube, family: str, namespace: str) -> AsyncIterator[list[Family]]:
    """Every version of the record, in order; complete once `caught_up` says so."""
    page = await kube.list_page(CONFIG_MAPS, limit=1)
    seen: list[Family] = []

    async def follow() -> None:
        async for lines in kube.watch(CONFIG_MAPS, page.version, labels=FAMILY_LABEL):
            for line in lines:
                event = orjson.loads(line)
                obj = event["object"]
                if event["type"] in ("ADDED", "MODIFIED") and metadata(obj)["namespace"] == namespace:
                    seen.append(read_family(family, obj))

    task = asyncio.create_task(follow())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def entry(name: str, namespace: str, **spec: Any) -> Json:
    return {
        "apiVersion": "gryvia.io/v1alpha1",
        "kind": "GryviaModelRegistry",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"modelName": "m", "version": name, "artifacts": {"s3Path": f"s3://m/{name}"}, **spec},
    }


async def entries(kube: Kube, namespace: str) -> dict[str, Json]:
    return {metadata(one)["name"]: one for one in await kube.list(MODEL_REGISTRY.resource, namespace)}


async def race(kube: Kube, namespace: str, until: Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]) -> int:
    """How many were promoted; AssertionError for whatever should not be."""
    scores = list(range(ENTRIES))
    random.Random(3).shuffle(scores)
    policy = {"metric": "acc", "minDelta": "0.005"}
    best = f"v{ENTRIES - 1}"
    async with watched_record(kube, "m", namespace) as families:
        await asyncio.gather(
            *(
                kube.create(
                    MODEL_REGISTRY.resource,
                    entry(
                        f"v{score}",
                        namespace,
                        stage="staging",
                        metadata={"acc": f"{score / ENTRIES}"},
                        promotionPolicy=policy,
                    ),
                )
                for score in scores
            )
        )

        async def settled() -> bool:
            found = await entries(kube, namespace)
            told = all(_told(one) for one in found.values())
            return told and len(found) == ENTRIES and found[best]["spec"]["stage"] == "production"

        try:
            await until(settled)
        except TimeoutError as error:
            left = {
                name: (one["spec"]["stage"], metadata(one)["generation"], one.get("status"))
                for name, one in (await entries(kube, namespace)).items()
                if not _told(one)
            }
            raise AssertionError(f"not settled: {left}") from error
        [record] = await kube.list(CONFIG_MAPS, namespace, labels=FAMILY_LABEL)
        last = read_family("m", record)

        async def caught_up() -> bool:
            return bool(families) and families[-1] == last

        await until(caught_up)
    check_records(families)
    assert [one.change for one in families] == list(dict.fromkeys(one.change for one in families)), "a version was lost"
    found = await entries(kube, namespace)
    by_stage = {stage: {name for name, one in found.items() if one["spec"]["stage"] == stage} for stage in STAGES}
    assert by_stage["production"] == {best}
    promoted = [term.entry for term in last.terms]
    assert by_stage["archived"] == set(promoted[1:])
    assert promoted[0] == best
    for name in by_stage["staging"]:
        assert found[name]["status"]["promotionDecision"] == "Rejected"
    return len(promoted)


def _told(one: Json) -> bool:
    """The status speaks of the newest spec, and of what became of it."""
    stage, status = one["spec"]["stage"], one.get("status") or {}
    said = status.get("productionChange") if stage == "archived" else status.get("promotionDecision")
    return status.get("observedGeneration") == metadata(one)["generation"] and bool(said)


STAGES = ("staging", "production", "archived")
