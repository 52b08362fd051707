"""A service as a process: settings, logs, health, the two connections, and a clean end.

A service is one async function that runs until it is cancelled; `connect` gives it its connections, `main` gives it a process
of its own, and the embedded platform runs many of them in one. SIGTERM and SIGINT cancel it: exit code 0. A Terminal error (a setting
that cannot work) is one sentence on standard error and exit code 2.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import structlog
from prometheus_client import CollectorRegistry
from pydantic import ValidationError

from gryvia_common.bus.connection import Bus
from gryvia_common.clock import Clock, SystemClock
from gryvia_common.errors import Terminal
from gryvia_common.kube.client import Kube
from gryvia_common.runtime.apiserver import ApiServer
from gryvia_common.runtime.health import Health, serve_health
from gryvia_common.runtime.logs import configure_logs
from gryvia_common.runtime.metrics import SharedMetrics, gauge
from gryvia_common.runtime.parsing import describe
from gryvia_common.runtime.settings import ProcessSettings
from gryvia_common.tasks import end_task

NEW_OBJECTS = 10_000
"""So many more objects than were freed make the garbage collector look at the young ones."""

Settings = TypeVar("Settings", bound=ProcessSettings)
Body = Callable[[Settings, Clock], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Connected:
    """A service's surroundings once it is connected."""

    name: str
    kube: Kube
    bus: Bus
    clock: Clock
    health: Health
    registry: CollectorRegistry
    metrics: SharedMetrics
    api: ApiServer


@asynccontextmanager
async def connect(name: str, settings: ProcessSettings, clock: Clock) -> AsyncIterator[Connected]:
    """Health first (a service that waits for the bus says so in /readyz), then the connections; closed in reverse order."""
    log = structlog.get_logger(name)
    registry = CollectorRegistry()
    metrics = SharedMetrics(registry)
    health = Health({"bus": lambda: "not connected to NATS yet"})
    async with serve_health(health, registry, host=settings.http_host, port=settings.http_port) as port:
        log.info("service started", service=name, replica=settings.replica, port=port)
        if settings.port_file is not None:
            settings.port_file.write_text(f"{port}\n")
        api = ApiServer(clock)
        health.checks["api"] = api.wrong

        def observe(verb: str, plural: str, code: int, seconds: float) -> None:
            metrics.observe_request(verb, plural, code, seconds)
            api.observe(verb, plural, code, seconds)

        kube = await Kube.connect(settings.kube, user_agent=f"gryvia-{name}", clock=clock, observe=observe)
        asking = asyncio.create_task(api.ask(kube.ping), name=f"{name} asks for the API server")
        try:
            bus = await Bus.connect(settings.nats, name=f"gryvia-{name}", clock=clock)
            try:
                health.checks["bus"] = lambda: "" if bus.connected else "not connected to NATS"
                gauge(registry, "gryvia_bus_connected", "1 while connected to NATS", lambda: float(bus.connected))
                yield Connected(name, kube, bus, clock, health, registry, metrics, api)
            finally:
                await bus.close()
        finally:
            await end_task(asking)
            await kube.close()
            log.info("service stopped", service=name)


def main(name: str, settings_type: type[Settings], body: Body[Settings]) -> None:
    """Run `body` as this process until a signal ends it."""
    try:
        settings = settings_type()
    except ValidationError as error:
        sys.exit(f"{name}: {describe(error, 'settings')}")
    configure_logs(level=settings.log_level, format=settings.log_format)
    _spare_the_collector()
    try:
        asyncio.run(_until_signalled(body(settings, SystemClock())))
    except Terminal as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)


def _spare_the_collector() -> None:
    """A pass makes thousands of objects that die with their last reference; to look for cycles among every 700 of them, and among
    all that the imports made, takes a tenth of a busy service's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)


async def _until_signalled(body: Awaitable[None]) -> None:
    task = asyncio.ensure_future(body)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        # Ours: nobody else cancels the service's own task.
        return
