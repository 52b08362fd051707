"""The example of the registry on the embedded platform: the better version is promoted, and goes back when it breaks its promise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from gryvia_common.kinds.families import read_family, record_name
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS

EXAMPLE = Path(__file__).parents[2] / "examples" / "ml-workflow" / "model-registry.yaml"


async def test_the_second_version_is_promoted_and_rolled_back_when_it_is_worse_live(running: Any) -> None:
    kube = running.kube

    async def until(name: str, wanted: Callable[[Json], bool]) -> Json:
        async with asyncio.timeout(60):
            while True:
                found: Json = await kube.get(MODEL_REGISTRY.resource, "default", name)
                if wanted({"stage": found["spec"].get("stage"), **(found.get("status") or {})}):
                    return found
                await asyncio.sleep(0.05)

    for document in yaml.safe_load_all(EXAMPLE.read_text()):
        document["metadata"]["namespace"] = "default"
        await kube.create(MODEL_REGISTRY.resource, document)
    second = await until("sentiment-v2", lambda state: bool(state.get("history")))
    assert second["spec"]["stage"] == "production"
    assert second["status"]["promotionDecision"] == "Promoted"
    assert second["status"]["previousVersion"] == "sentiment-v1"
    await until("sentiment-v1", lambda state: state["stage"] == "archived" and "history" not in state)
    await kube.patch(
        MODEL_REGISTRY.resource, "default", "sentiment-v2", {"spec": {"metadata": {"live_accuracy": "0.87"}}}
    )
    await until("sentiment-v2", lambda state: state.get("phase") == "RolledBack")
    await until("sentiment-v1", lambda state: state["stage"] == "production" and bool(state.get("history")))
    record = await kube.get(CONFIG_MAPS, "default", record_name("sentiment"))
    family = read_family("sentiment", record)
    assert [(term.entry, term.cause, term.reason) for term in family.terms] == [
        ("sentiment-v1", "RolledBack", ""),
        ("sentiment-v2", "Promoted", "RolledBack"),
        ("sentiment-v1", "ByHand", "Replaced"),
    ]
