"""All services on a real API server, each with its own rights only: the token of its ServiceAccount with the roles in deploy/rbac,
and its own user on NATS. In this process, or with `processes` each in one of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from tools.realcluster import RealCluster

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.bus_users import settings_of
from gryvia_cli.platform.inprocess import run_in_process
from gryvia_cli.platform.services import SERVICES, EmbeddedService
from gryvia_cli.platform.subprocesses import ServiceProcess
from gryvia_common.clock import SystemClock
from gryvia_common.errors import Gone

RBAC = Path(__file__).parents[2] / "deploy" / "rbac"
NAMESPACE = "gryvia"


@contextmanager
def restricted_accounts(cluster: RealCluster) -> Iterator[Mapping[str, Path]]:
    """The kubeconfig of each service. In the end the server's own log has to say that nothing was refused to any of them."""
    cluster.kubectl("apply", "-f", str(RBAC))
    yield {service.name: cluster.kubeconfig_of_account(NAMESPACE, f"gryvia-{service.name}") for service in SERVICES}
    asked = [
        event
        for event in cluster.audit()
        if event["user"].get("username", "").startswith(f"system:serviceaccount:{NAMESPACE}:")
    ]
    assert asked
    refused = [event for event in asked if event["annotations"].get("authorization.k8s.io/decision") != "allow"]
    assert [f"{event['user']['username']} {event['verb']} {event['requestURI']}" for event in refused] == []


@dataclass(slots=True)
class Services:
    """`bus` holds the password of each on `nats`; `children` the processes, when there are any."""

    accounts: Mapping[str, Path]
    nats: NatsServer
    bus: Path
    folder: Path
    processes: bool = False
    troubles: dict[str, str] = field(default_factory=dict)
    children: dict[str, ServiceProcess] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Until each says it is ready."""
        for service in SERVICES:
            work = self._process(service).run() if self.processes else self._coroutine(service)
            self._tasks.append(asyncio.create_task(work, name=service.name))
        async with aiohttp.ClientSession() as session:
            for service in SERVICES:
                await until(lambda name=service.name: self._ready(session, name), bool)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for service in SERVICES:
            self._port_file(service.name).unlink(missing_ok=True)

    def violations(self) -> list[str]:
        """What NATS refused to any of them."""
        return [line for line in self.nats.log_file.read_text().splitlines() if "Violation" in line]

    def _coroutine(self, service: EmbeddedService) -> Any:
        return run_in_process(
            service,
            kubeconfig=self.accounts[service.name],
            nats=settings_of(self.bus, self.nats.url, service.name),
            port_file=self._port_file(service.name),
            troubles=self.troubles,
            clock=SystemClock(),
        )

    def _process(self, service: EmbeddedService) -> ServiceProcess:
        environment = {
            "GRYVIA_KUBE_KUBECONFIG": str(self.accounts[service.name]),
            "GRYVIA_NATS_URL": self.nats.url,
            "GRYVIA_NATS_USER": service.name,
            "GRYVIA_NATS_PASSWORD_FILE": str(self.bus / service.name),
            "GRYVIA_PORT_FILE": str(self._port_file(service.name)),
        }
        log, record = self.folder / f"{service.name}.log", self.folder / f"{service.name}.pid"
        self.children[service.name] = ServiceProcess(service, environment, log, record, SystemClock())
        return self.children[service.name]

    def _port_file(self, name: str) -> Path:
        return self.folder / f"{name}.port"

    async def _ready(self, session: aiohttp.ClientSession, name: str) -> bool:
        with suppress(OSError, ValueError, aiohttp.ClientError):
            port = int(self._port_file(name).read_text())
            async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                return answer.status == 200
        return False


async def until(read: Callable[[], Awaitable[Any]], wanted: Callable[[Any], Any], *, seconds: float = 60) -> Any:
    """The first state that is as wanted (what is not there is not); the bound is for a hang, and its error shows the last."""
    state: Any = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                with suppress(Gone):
                    if wanted(state := await read()):
                        return state
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        last = state.get("status") if isinstance(state, dict) else state
        raise AssertionError(f"not as wanted after {seconds:.0f} s: {last}") from error
