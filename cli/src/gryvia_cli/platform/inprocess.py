"""All services in this process, on this event loop: the embedded default (fourteen interpreters would cost a laptop a
gigabyte and ten seconds).

A service that ends while the platform runs is started again after a moment, as a cluster would; the log says why it ended.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from gryvia_cli.platform.services import EmbeddedService
from gryvia_common.bus.settings import BusSettings
from gryvia_common.clock import Clock
from gryvia_common.kube.config import KubeSettings

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0


async def run_in_process(
    service: EmbeddedService,
    *,
    kubeconfig: Path,
    nats: BusSettings,
    port_file: Path,
    troubles: dict[str, str],
    clock: Clock,
) -> None:
    """Until cancelled. `troubles` says by name how a service ended last."""
    log = structlog.get_logger("platform")
    settings = service.settings_type()(
        kube=KubeSettings(kubeconfig=kubeconfig),
        nats=nats,
        port_file=port_file,
        replica=f"{service.name}-embedded",
    )
    pause = FIRST_PAUSE
    while True:
        started = clock.monotonic()
        try:
            await service.run()(settings, clock)
            log.warning("service ended", service=service.name)
            troubles[service.name] = "it ended by itself"
        except Exception as error:
            troubles[service.name] = f"it crashed with {type(error).__name__}: {error}"
            log.exception("service crashed", service=service.name)
        if clock.monotonic() - started > LONGEST_PAUSE:
            pause = FIRST_PAUSE
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
