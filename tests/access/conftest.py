"""All services in this process, each with its own rights only: on the API server through a GuardedApi, on NATS as its own user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.bus_users import make_users, settings_of
from gryvia_cli.platform.services import SERVICES
from gryvia_common.clock import SystemClock
from gryvia_common.kube.config import KubeSettings

from .guarded_api import NAMESPACE, GuardedApi, until

NAMES = tuple(service.name for service in SERVICES)


@dataclass
class RestrictedServices:
    """What runs, and where. `restart_bus` is a wipe: a new server without data in place of the old one."""

    api: GuardedApi
    folder: Path
    nats: NatsServer

    async def restart_bus(self, *, max_payload: int) -> None:
        await self.nats.stop()
        anew = nats_server(self.folder, self.nats.port, "wiped", max_payload=max_payload)
        await anew.start(supervise=False)
        self.nats = anew

    def violations(self) -> list[str]:
        logs = self.folder.glob("nats-*/nats-server.log")
        return [line for log in logs for line in log.read_text().splitlines() if "Violation" in line]

    async def until_granted_is_used(self) -> None:
        """Every right has been needed; the error says which was not."""

        async def used() -> bool:
            return not self.unused()

        try:
            await until(used)
        except TimeoutError:
            assert self.unused() == {}

    def unused(self) -> dict[str, list[Any]]:
        from .guarded_api import grants

        left = {name: sorted(grants(name) - self.api.used(name)) for name in NAMES}
        return {name: some for name, some in left.items() if some}


def nats_server(folder: Path, port: int, name: str, *, max_payload: int = 1 << 20) -> NatsServer:
    return NatsServer(folder / f"nats-{name}", port, max_payload=max_payload, config=make_users(folder / "bus"))


@asynccontextmanager
async def restricted_services(api: GuardedApi, folder: Path) -> AsyncIterator[RestrictedServices]:
    nats = nats_server(folder, 0, "first")
    await nats.start(supervise=False)
    running = RestrictedServices(api, folder, nats)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(lambda: running.nats.stop())
        tasks = [asyncio.create_task(_run(api, folder, nats.url, name), name=name) for name in NAMES]
        stack.push_async_callback(_end, tasks)
        yield running


def _run(api: GuardedApi, folder: Path, url: str, name: str) -> Awaitable[None]:
    service = next(service for service in SERVICES if service.name == name)
    place = {"bridge_lease_namespace": NAMESPACE} if name == "bridge" else {}
    settings = service.settings_type()(
        kube=KubeSettings(kubeconfig=api.kubeconfig(folder, name)),
        nats=settings_of(folder / "bus", url, name),
        replica=f"{name}-test",
        **place,
    )
    run: Callable[..., Awaitable[None]] = service.run()
    return run(settings, SystemClock())


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(ended, asyncio.CancelledError), ended
