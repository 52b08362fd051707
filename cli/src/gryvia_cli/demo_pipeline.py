"""The demo's pipeline: the example from its first step to a model in production, told by the platform's own events.

What is printed while it runs comes from the bus, as any integration would get it; how it ended is read from the objects.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from rich.console import Console
from rich.markup import escape

from gryvia_cli.bus import connected_bus
from gryvia_cli.event_text import details, short_type
from gryvia_cli.model_text import stage_of
from gryvia_cli.output import say
from gryvia_cli.platform.bus_users import settings_of
from gryvia_cli.platform.embedded import Platform
from gryvia_cli.workflow_graph import drawn
from gryvia_cli.workflow_text import headline, steps_of
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.permissions import READER
from gryvia_common.bus.settings import BusSettings
from gryvia_common.bus.subscribe import subscribe_events
from gryvia_common.errors import Gone
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, key_of, metadata
from gryvia_common.tasks import end_task

PIPELINE_SECONDS = 300.0
SETTLE_SECONDS = 20.0
POLL_SECONDS = 0.2


async def watch_pipeline(platform: Platform, kube: Kube, workflow: Json, out: Console) -> bool:
    """Whether it succeeded and its model was judged. Prints events as they come, then the graph and the model."""
    made = str(metadata(workflow)["creationTimestamp"])
    async with _bus(platform) as bus:
        telling = asyncio.create_task(_tell(bus, workflow, made, out), name="demo-events")
        try:
            ended = await _until_ended(kube, workflow)
            model = await _model(kube, ended)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await asyncio.shield(telling)
        finally:
            await end_task(telling)
    now = datetime.now(UTC)
    for line in drawn(steps_of(ended), now, out.width):
        out.print(line, soft_wrap=True)
    say(out, escape(headline(ended, now)))
    if model is not None:
        _say_model(model, out)
    return ended["status"].get("phase") == "Succeeded" and model is not None


@contextlib.asynccontextmanager
async def _bus(platform: Platform) -> AsyncIterator[Bus]:
    """As the user that may read events and nothing else."""
    foreign = platform.nats is None
    settings = BusSettings() if foreign else settings_of(platform.folder.bus_passwords, platform.nats_url, READER)
    async with connected_bus(settings, "gryvia-demo") as bus:
        yield bus


async def _tell(bus: Bus, workflow: Json, since: str, out: Console) -> None:
    """The events of the workflow and of its models, until both have said their last."""
    name = metadata(workflow)["name"]
    families = _families(workflow)
    last = {f"workflow.{end}" for end in ("succeeded", "failed")}
    ends = {"workflow", *(["model"] if families else [])}
    async for event in subscribe_events(bus, [("workflow", "*"), ("model", "*")], since="all"):
        kind = short_type(event)
        mine = event.name == name if kind.startswith("workflow.") else event.data.get("modelName") in families
        if not mine or timestamp(event.time) < since:
            continue
        say(
            out,
            f"[dim]{event.time.astimezone():%H:%M:%S}[/dim]  {kind:<18} {escape(event.name)} {escape(details(event))}",
        )
        if kind in last or kind == "model.promoted":
            ends.discard(kind.partition(".")[0])
        if not ends:
            return


def _families(workflow: Json) -> set[str]:
    return {str(step["register"]["modelName"]) for step in workflow["spec"]["steps"] if step.get("register")}


async def _until_ended(kube: Kube, workflow: Json) -> Json:
    """TimeoutError when it does not."""
    key = key_of(workflow)
    async with asyncio.timeout(PIPELINE_SECONDS):
        while (workflow.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            await asyncio.sleep(POLL_SECONDS)
            workflow = await kube.get(WORKFLOW.resource, key.namespace, key.name)
    return workflow


async def _model(kube: Kube, workflow: Json) -> Json | None:
    """The entry that the pipeline registered, once the registry has judged it; None when it registered none."""
    entry = next((step.state.get("jobName") for step in steps_of(workflow) if step.type == "register"), None)
    if not entry:
        return None
    found: Json | None = None
    with contextlib.suppress(TimeoutError, Gone):
        async with asyncio.timeout(SETTLE_SECONDS):
            while not _is_judged(found):
                await asyncio.sleep(POLL_SECONDS)
                found = await kube.get(MODEL_REGISTRY.resource, metadata(workflow)["namespace"], str(entry))
    return found


def _is_judged(model: Json | None) -> bool:
    """By its policy, if it has one, and its stage has followed."""
    if model is None:
        return False
    decision = (model.get("status") or {}).get("promotionDecision")
    needed = "promotionPolicy" in model["spec"]
    return (decision is not None or not needed) and (decision != "Promoted" or stage_of(model) == "production")


def _say_model(model: Json, out: Console) -> None:
    spec, state = model["spec"], model.get("status") or {}
    scores = _scores(spec.get("metadata") or {}, (spec.get("promotionPolicy") or {}).get("metric"))
    say(
        out,
        f"[bold green]model {escape(spec['modelName'])} version {escape(spec['version'])}: {spec.get('stage')}[/bold green]"
        f" ({state.get('promotionDecision')} by its policy{escape(scores)})",
    )


def _scores(values: Json, metric: str | None) -> str:
    return f", {metric} {values[metric]}" if metric in values else ""
