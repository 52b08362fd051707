"""The bridge as a process: `python -m gryvia_bridge`. `run` is the same inside somebody else's event loop."""

from __future__ import annotations

from uuid import uuid4

from gryvia_bridge.bridge import Bridge, run_bridge
from gryvia_bridge.metrics import BridgeMetrics
from gryvia_bridge.settings import BridgeSettings
from gryvia_common.clock import Clock
from gryvia_common.runtime.process import connect, main


async def run(settings: BridgeSettings, clock: Clock) -> None:
    """Until cancelled."""
    async with connect("bridge", settings, clock) as connected:
        bridge = Bridge(
            connected.kube,
            connected.bus,
            clock,
            metrics=BridgeMetrics(connected.registry),
            lease_seconds=settings.lease_seconds,
            api=connected.api,
        )
        connected.health.checks["types"] = lambda: bridge.state.wrong(clock.monotonic())
        connected.health.checks["publishing"] = lambda: bridge.state.stuck()
        identity = f"{settings.replica}-{uuid4().hex[:8]}"
        await run_bridge(bridge, lease=settings.lease, identity=identity)


if __name__ == "__main__":
    main("bridge", BridgeSettings, run)
