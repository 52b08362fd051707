"""The embedded platform as a whole: NATS, devcluster, the CRDs and the services, up in this order and down in reverse.

`run_platform` yields once every service says it is ready. One process by default; with `processes` each service is one of
its own (devcluster stays here). Progress is told as it happens: a start that takes long says at what.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import yaml

from gryvia_cli.bus import connected_bus
from gryvia_cli.nats_server import NatsServer, external_url
from gryvia_cli.platform.bus_users import make_users, settings_of
from gryvia_cli.platform.crds import connected, install_crds
from gryvia_cli.platform.folder import PlatformFolder
from gryvia_cli.platform.inprocess import run_in_process
from gryvia_cli.platform.services import SERVICES
from gryvia_cli.platform.subprocesses import ServiceProcess, end_leftovers
from gryvia_common.bus.settings import BusSettings
from gryvia_common.clock import Clock, SystemClock
from gryvia_common.errors import Terminal
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import NODES
from gryvia_devcluster.api.server import PortTaken
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings as ClusterSettings
from gryvia_devcluster.store import DamagedState

READY_SECONDS = 60.0
NODE_SECONDS = 10.0
POLL_SECONDS = 0.05

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PlatformOptions:
    """`port` 0 takes a free one for the API server. `persist` keeps objects over restarts."""

    folder: PlatformFolder
    port: int = 0
    persist: bool = False
    processes: bool = False
    images: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Platform:
    """A running platform. `nats` is None when it is somebody else's. `services` are the supervised processes, empty when all
    run in this one; `troubles` says how a service of this process ended last."""

    folder: PlatformFolder
    cluster: DevCluster
    nats: NatsServer | None
    nats_url: str
    kube: KubeSettings
    services: dict[str, ServiceProcess] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)

    def bus(self, user: str) -> BusSettings:
        """How `user` connects. To somebody else's NATS everybody connects as the environment says (`GRYVIA_NATS_*`)."""
        return BusSettings() if self.nats is None else settings_of(self.folder.bus_passwords, self.nats_url, user)


@asynccontextmanager
async def run_platform(
    options: PlatformOptions, *, clock: Clock | None = None, progress: Progress = lambda text: None
) -> AsyncIterator[Platform]:
    """Terminal, in one sentence, when something that a person can mend is in the way."""
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        with options.folder.usable():
            platform = await _start(options, clock, progress, stack)
        yield platform


async def _start(options: PlatformOptions, clock: Clock, progress: Progress, stack: AsyncExitStack) -> Platform:
    folder = options.folder
    stack.enter_context(folder.hold())
    for stale in folder.run.glob("*.port"):
        stale.unlink()
    await end_leftovers(folder.run)
    nats, nats_url = await _start_nats(options, stack)
    progress("NATS is ready")
    cluster = await _start_cluster(options, stack)
    await cluster.write_kubeconfig(folder.kubeconfig)
    kube = KubeSettings(kubeconfig=folder.kubeconfig)
    async with connected(kube, clock) as client:
        await install_crds(client, clock)
        await _until_node_ready(client, folder, clock)
    progress(f"the cluster is ready at {cluster.url}")
    folder.write_address(nats_url=nats_url, pid=os.getpid())
    platform = Platform(folder, cluster, nats, nats_url, kube)
    tasks = _start_services(platform, options, clock)
    stack.push_async_callback(_end, tasks)
    await _until_ready(platform, clock, progress)
    return platform


async def _start_nats(options: PlatformOptions, stack: AsyncExitStack) -> tuple[NatsServer | None, str]:
    folder = options.folder
    url = external_url()
    if url:
        async with connected_bus(BusSettings(), "gryvia-up"):
            return None, url
    server = NatsServer(folder.nats_data, config=make_users(folder.bus_passwords))
    # Without --persist: what was said of objects that are no more.
    await server.start(keep=options.persist)
    stack.push_async_callback(server.stop)
    return server, server.url


async def _start_cluster(options: PlatformOptions, stack: AsyncExitStack) -> DevCluster:
    settings = ClusterSettings(
        data_dir=options.folder.cluster_data.absolute(),
        port=options.port,
        persist=options.persist,
        images_file=options.images,
    )
    try:
        return await stack.enter_async_context(DevCluster(settings))
    except yaml.YAMLError as error:
        raise Terminal(
            f"{options.images} is not valid YAML: {' '.join(str(error).split())}", reason="Images"
        ) from error
    except (PortTaken, DamagedState, ValueError) as error:
        raise Terminal(str(error), reason=type(error).__name__) from error


def _start_services(platform: Platform, options: PlatformOptions, clock: Clock) -> list[asyncio.Task[None]]:
    folder = platform.folder
    tasks = []
    for service in SERVICES:
        port_file = folder.run / f"{service.name}.port"
        if options.processes:
            environment = {
                "GRYVIA_KUBE_KUBECONFIG": str(folder.kubeconfig.absolute()),
                **_bus_environment(platform.bus(service.name)),
                "GRYVIA_PORT_FILE": str(port_file.absolute()),
                **options.environment,
            }
            process = ServiceProcess(
                service, environment, folder.logs / f"{service.name}.log", folder.run / f"{service.name}.pid", clock
            )
            platform.services[service.name] = process
            work = process.run()
        else:
            work = run_in_process(
                service,
                kubeconfig=folder.kubeconfig,
                nats=platform.bus(service.name),
                port_file=port_file,
                troubles=platform.troubles,
                clock=clock,
            )
        tasks.append(asyncio.create_task(work, name=f"platform {service.name}"))
    return tasks


def _bus_environment(settings: BusSettings) -> dict[str, str]:
    """Paths only, no secret; what is not given here a process has from our own environment."""
    if settings.password_file is None:
        return {"GRYVIA_NATS_URL": settings.url}
    return {
        "GRYVIA_NATS_URL": settings.url,
        "GRYVIA_NATS_USER": settings.user,
        "GRYVIA_NATS_PASSWORD_FILE": str(settings.password_file.absolute()),
    }


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _until_node_ready(kube: Kube, folder: PlatformFolder, clock: Clock) -> None:
    """Without its node a cluster takes every object and runs nothing."""
    deadline = clock.monotonic() + NODE_SECONDS
    while not any(_is_ready(node) for node in await kube.list(NODES)):
        if clock.monotonic() > deadline:
            raise Terminal(
                f"the cluster's node has not started after {NODE_SECONDS:.0f} s; see {folder.logs / 'platform.log'}, "
                f"and if {folder.cluster_data} is damaged move it away",
                reason="NotReady",
            )
        await asyncio.sleep(POLL_SECONDS)


def _is_ready(node: Json) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def _until_ready(platform: Platform, clock: Clock, progress: Progress) -> None:
    """Each service's own /readyz, as a cluster would ask."""
    folder = platform.folder
    waiting = {service.name for service in SERVICES}
    reasons: dict[str, str] = {}
    deadline = clock.monotonic() + READY_SECONDS
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session:
        while waiting:
            for name in sorted(waiting):
                reasons[name] = await _not_ready(session, folder.run / f"{name}.port")
                if not reasons[name]:
                    waiting.discard(name)
                    progress(f"{name} is ready")
            if waiting and clock.monotonic() > deadline:
                name = min(waiting)
                raise Terminal(
                    f"service {name} is not ready after {READY_SECONDS:.0f} s: "
                    f"{platform.troubles.get(name, reasons[name])}; see {folder.logs}",
                    reason="NotReady",
                )
            if waiting:
                await asyncio.sleep(POLL_SECONDS)


async def _not_ready(session: aiohttp.ClientSession, port_file: Path) -> str:
    """Why not; empty when it is."""
    port = _port(port_file)
    if port is None:
        return "it has not started"
    try:
        async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            if answer.status == 200:
                return ""
            checks: dict[str, str] = (await answer.json())["checks"]
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"it does not answer: {error}"
    return "; ".join(reason for reason in checks.values() if reason != "ok")


def _port(port_file: Path) -> int | None:
    """None until the service has written it whole."""
    with suppress(OSError, ValueError):
        return int(port_file.read_text())
    return None
