"""A platform of processes that a test may kill, stop and cut off: API server, NATS, bridge and any number of replicas, and pods that
end when they should without being run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.crds import connected, install_crds
from gryvia_common.clock import SystemClock
from gryvia_common.errors import GryviaError
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json, labels_of, metadata
from gryvia_common.kube.resources import PODS


@dataclass
class Process:
    """A program that is started again whenever it ends; `stopped` holds it in that state."""

    command: tuple[str, ...]
    environment: dict[str, str]
    log: Path
    pid: int | None = None
    starts: int = 0
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.hold.set()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            await self.hold.wait()
            with self.log.open("ab") as output:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *self.command,
                    env={**os.environ, **self.environment},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            self.pid, self.starts = process.pid, self.starts + 1
            try:
                await process.wait()
            finally:
                self.pid = None
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        process.send_signal(signal.SIGCONT)
                        process.kill()
                    await process.wait()
            await asyncio.sleep(0.1)

    def send(self, number: signal.Signals) -> None:
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def lines(self) -> list[Json]:
        """What it has logged."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found


@dataclass(kw_only=True)
class Site:
    """What `site()` yields, on devcluster, or `real_site()`, on a real control plane, which has an `etcd`. `admin`: a client that
    goes to the API server directly."""

    folder: Path
    kubeconfig: Path
    nats: NatsServer
    admin: Kube
    api: Process
    url: str
    etcd: Process | None = None
    services: dict[str, Process] = field(default_factory=dict)

    def service(
        self, package: str, name: str, *, kubeconfig: Path | None = None, nats: str = "", **settings: str
    ) -> Process:
        """Start a replica `name` of gryvia_<package>."""
        environment = {
            "GRYVIA_KUBE_KUBECONFIG": str(kubeconfig or self.kubeconfig),
            "GRYVIA_NATS_URL": nats or self.nats.url,
            "GRYVIA_PORT_FILE": str(self.folder / f"{name}.port"),
            "GRYVIA_REPLICA": name,
            **settings,
        }
        process = Process(("-m", f"gryvia_{package}"), environment, self.folder / f"{name}.log")
        self.services[name] = process
        process.start()
        return process

    async def readyz(self, name: str) -> dict[str, str]:
        """The failing checks with their reasons; {"process": …} when it does not answer."""
        try:
            port = int((self.folder / f"{name}.port").read_text())
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session,
                session.get(f"http://127.0.0.1:{port}/readyz") as answer,
            ):
                checks: dict[str, str] = (await answer.json())["checks"]
        except (OSError, ValueError, aiohttp.ClientError, TimeoutError) as error:
            return {"process": str(error) or type(error).__name__}
        return {check: reason for check, reason in checks.items() if reason != "ok"}

    async def until_ready(self, *names: str, seconds: float = 60.0) -> None:
        async with asyncio.timeout(seconds):
            for name in names or tuple(self.services):
                while await self.readyz(name):
                    await asyncio.sleep(0.05)

    async def end(self) -> None:
        await asyncio.gather(*(process.end() for process in self.services.values()))


@asynccontextmanager
async def site(folder: Path, *, persist: bool = False, pods: Callable[[str], Pod] | None = None) -> AsyncIterator[Site]:
    """API server and NATS; the services are the test's to start. `pods` plays the node."""
    kubeconfig = folder / "kubeconfig"
    port = _free_port()
    arguments = ["--port", str(port), "--data", str(folder / "cluster"), "--kubeconfig", str(kubeconfig), "--no-node"]
    arguments += ["--persist"] if persist else []
    api = Process(("-m", "gryvia_devcluster", *arguments), {}, folder / "cluster.log")
    nats = NatsServer(folder / "nats")
    await nats.start()
    api.start()
    clock = SystemClock()
    node: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(30):
            while not kubeconfig.exists() or not kubeconfig.read_text().endswith("\n"):
                await asyncio.sleep(0.02)
        async with connected(KubeSettings(kubeconfig=kubeconfig), clock) as admin:
            await install_crds(admin, clock)
            url = f"http://127.0.0.1:{port}"
            found = Site(folder=folder, kubeconfig=kubeconfig, nats=nats, admin=admin, api=api, url=url)
            node = asyncio.create_task(play_node(admin, pods or (lambda name: Pod())))
            try:
                yield found
            finally:
                await found.end()
    finally:
        if node is not None:
            node.cancel()
            await asyncio.gather(node, return_exceptions=True)
        await api.end()
        await nats.stop()


@dataclass(frozen=True, slots=True)
class Pod:
    """How long a pod runs, and the number it leaves behind as `score`."""

    seconds: float = 0.0
    score: float = 0.5


async def play_node(kube: Kube, pods: Callable[[str], Pod]) -> None:
    """Looks four times a second; an API server that is away is waited for."""
    loop = asyncio.get_running_loop()
    began: dict[str, float] = {}
    while True:
        with contextlib.suppress(GryviaError):
            for pod in await kube.list(PODS):
                await _one_step(kube, pod, pods, began, loop.time())
        await asyncio.sleep(0.25)


async def _one_step(kube: Kube, pod: Json, pods: Callable[[str], Pod], began: dict[str, float], now: float) -> None:
    meta = metadata(pod)
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    at = timestamp(SystemClock().now())
    with contextlib.suppress(GryviaError):
        if meta.get("deletionTimestamp"):
            body = {"gracePeriodSeconds": 0, "kind": "DeleteOptions", "apiVersion": "v1"}
            await kube._transport.call(_removal(meta, body))
        elif phase == "Pending":
            await _patch(kube, meta, "Running", {"running": {"startedAt": at}}, [{"type": "Ready", "status": "True"}])
        elif phase == "Running":
            begun = began.setdefault(meta["uid"], now)
            course = pods(labels_of(pod).get("gryvia.io/job", meta["name"]))
            if now - begun >= course.seconds:
                message = json.dumps({"score": course.score})
                ended = {"exitCode": 0, "reason": "Completed", "message": message, "startedAt": at, "finishedAt": at}
                await _patch(kube, meta, "Succeeded", {"terminated": ended}, [])


def _removal(meta: Json, body: Json) -> object:
    import orjson

    from gryvia_common.kube.transport import Request

    path = PODS.path(meta["namespace"], meta["name"])
    return Request("delete", PODS, "DELETE", path, meta["name"], body=orjson.dumps(body))


async def _patch(kube: Kube, meta: Json, phase: str, state: Json, conditions: list[Json]) -> None:
    container = {
        "name": "main",
        "restartCount": 0,
        "ready": phase == "Running",
        "image": "x",
        "imageID": "",
        "state": state,
    }
    status = {"phase": phase, "conditions": conditions, "containerStatuses": [container]}
    body = {"status": status}
    await kube.patch(PODS, meta["namespace"], meta["name"], body, subresource="status")


def study(name: str, *, trials: int = 1, parallelism: int = 2, **spec: object) -> Json:
    return {
        "apiVersion": AUTO_TUNER.resource.api_version,
        "kind": AUTO_TUNER.name,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "searchAlgorithm": "random",
            "objective": {"metricName": "score", "direction": "maximize"},
            "maxTrials": trials,
            "parallelism": parallelism,
            "parameterSpace": [{"name": "x", "type": "float", "min": 0, "max": 1}],
            "jobTemplate": {"type": "training", "gpus": 0, "image": "python:3.11-slim"},
            **spec,
        },
    }


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
