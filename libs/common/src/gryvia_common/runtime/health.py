"""Is the service alive, is it ready, what does it measure: three paths that every service answers alike.

`/healthz` only says that the event loop turns (a restart helps against nothing else). `/readyz` names each check that fails
with its reason: the bus is away, the snapshot is not complete. `/metrics` is Prometheus text. Loopback unless told otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from gryvia_common.errors import Terminal

Check = Callable[[], str]
"""Empty when all is well, otherwise what is wrong."""


@dataclass(slots=True)
class Health:
    """The checks of one service by name; each is asked at every request, so it must be cheap."""

    checks: dict[str, Check] = field(default_factory=dict)

    def failing(self) -> dict[str, str]:
        return {name: reason for name, check in self.checks.items() if (reason := check())}


@asynccontextmanager
async def serve_health(health: Health, registry: CollectorRegistry, *, host: str, port: int) -> AsyncIterator[int]:
    """Serve until the block ends; yields the port (0 asks for a free one). Terminal when the port is taken."""

    async def alive(request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(request: web.Request) -> web.Response:
        failing = health.failing()
        body = {"ready": not failing, "checks": {name: failing.get(name, "ok") for name in health.checks}}
        return web.json_response(body, status=503 if failing else 200)

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", alive), web.get("/readyz", ready), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise Terminal(
                f"cannot serve health and metrics on {host}:{port}: {error.strerror or error}; set GRYVIA_HTTP_PORT "
                "to a free port, or to 0 for any",
                reason="PortTaken",
            ) from error
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
