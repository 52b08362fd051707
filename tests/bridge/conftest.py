"""A scripted API server, a client of it, and a bridge between it and a real NATS."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from gryvia_bridge.bridge import Bridge, run_bridge
from gryvia_bridge.watched import Watched
from gryvia_common.bus.connection import Bus
from gryvia_common.kube.client import Kube
from gryvia_common.kube.resources import PODS

sys.path.insert(0, str(Path(__file__).parent))  # test modules are imported by path; this is for their shared module

from scripted_api import AIJOBS, FastClock, ScriptedApi, client, eventually, serving

WATCHED = (Watched(AIJOBS), Watched(PODS, "app.kubernetes.io/managed-by=gryvia"))


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    scripted = ScriptedApi()
    async with serving(scripted):
        yield scripted


@pytest.fixture
async def kube(api: ScriptedApi) -> AsyncIterator[Kube]:
    async with client(api.url) as connected:
        yield connected


@pytest.fixture
async def start_bridge(kube: Kube, bridge_bus: Bus) -> AsyncIterator[Callable[..., Awaitable[Bridge]]]:
    """Starts a bridge (active at once) and waits until every type is complete, unless told not to."""
    tasks: list[asyncio.Task[None]] = []

    async def start(
        *,
        watched: Sequence[Watched] = WATCHED,
        wait: bool = True,
        client: Kube = kube,
        on: Bus = bridge_bus,
        speed: float = 50.0,
    ) -> Bridge:
        bridge = Bridge(client, on, FastClock(speed), watched=watched)
        task = asyncio.create_task(run_bridge(bridge, lease=None, identity="test"))
        tasks.append(task)

        async def ready() -> bool:
            if task.done():
                task.result()
            return bool(bridge.state.types) and all(
                state.synced and state.live for state in bridge.state.types.values()
            )

        if wait:
            await eventually(ready)
        return bridge

    async def stop() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        tasks.clear()

    start.stop = stop  # type: ignore[attr-defined]  # a test restarts bridges
    yield start
    await stop()
