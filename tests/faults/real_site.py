"""The same site on a real control plane: etcd, kube-apiserver, kube-controller-manager, and pods played by the simulated node.

kube-apiserver (and etcd) are started again on their data whenever they end, so a test may kill and stop them. The services may do
what deploy/rbac gives them and no more: a server that has just come up knows nobody's rights for a moment.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from harness import Pod, Process, Site
from tools.realcluster import RealCluster
from tools.realcluster.http import Answer, Events, Http
from tools.realcluster.kubelet import Tls
from tools.realcluster.node import Fate, SimulatedNode

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.crds import connected, install_crds
from gryvia_common.clock import SystemClock
from gryvia_common.errors import GryviaError
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json, labels_of, metadata
from gryvia_common.runtime.access import NAMESPACE

RBAC = Path(__file__).parents[2] / "deploy" / "rbac"
SETTINGS = {"GRYVIA_BRIDGE_LEASE_NAMESPACE": NAMESPACE}
# Becomes the program under its own pid: a Process runs Python.
_BECOME = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
# The node does not report its health: without this it would be taken for lost after an outage, and its pods with it.
_TRUSTING = "--node-monitor-grace-period=2h"


class PatientHttp(Http):
    """A call of a server that comes and goes is repeated until it is answered. What turns out to be there already after a lost
    answer is what we sent."""

    async def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        lost = False
        while True:
            try:
                answer = await super().__call__(method, path, body, **options)
            except (aiohttp.ClientError, OSError, TimeoutError):
                lost = True
            else:
                # 403: the node has every right, and the server has only just come up.
                if answer.code < 500 and answer.code not in (403, 429):
                    return Answer(200, answer.body) if lost and answer.code == 409 else answer
            await asyncio.sleep(0.2)

    @asynccontextmanager
    async def watch(self, path: str, **options: Any) -> AsyncIterator[Events]:
        try:
            async with super().watch(path, **options) as events:
                yield events
        except aiohttp.ClientError as error:
            raise ConnectionError(str(error)) from error


@asynccontextmanager
async def real_site(
    folder: Path, *, pods: Callable[[str], Pod] | None = None
) -> AsyncIterator[tuple[Site, RealCluster]]:
    """As `site()`. `service(…, kubeconfig=cluster.kubeconfig_of_account(NAMESPACE, "gryvia-jobs"), **SETTINGS)` starts a replica."""
    cluster = RealCluster(folder / "kube", controller_flags=[_TRUSTING])
    await asyncio.to_thread(cluster.start)
    api = etcd = None
    nats = NatsServer(folder / "nats")
    try:
        api, etcd = _taken_over(cluster, "kube-apiserver"), _taken_over(cluster, "etcd")
        await nats.start()
        clock = SystemClock()
        async with connected(KubeSettings(kubeconfig=cluster.kubeconfig), clock) as admin:
            await until_answered(admin)
            await asyncio.to_thread(cluster.kubectl, "apply", "-f", str(RBAC))
            await install_crds(admin, clock)
            found = Site(
                folder=folder,
                kubeconfig=cluster.kubeconfig,
                nats=nats,
                admin=admin,
                api=api,
                url=cluster.url,
                etcd=etcd,
            )
            async with (
                PatientHttp(cluster.url, cluster.token, cluster.ca) as http,
                SimulatedNode(http, _fates(pods or (lambda name: Pod())), tls=_certificate(cluster)),
            ):
                try:
                    yield found, cluster
                finally:
                    await found.end()
    finally:
        await nats.stop()
        await asyncio.to_thread(cluster.stop)
        for process in (api, etcd):
            if process is not None:
                await process.end()


async def until_answered(admin: Kube, *, seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            try:
                return await admin.ping()
            except GryviaError:
                await asyncio.sleep(0.1)


def _taken_over(cluster: RealCluster, name: str) -> Process:
    """From here on it is started again whenever it ends."""
    program = cluster.programs.pop(name)
    command = [str(argument) for argument in program.process.args]  # type: ignore[union-attr]
    program.stop()
    process = Process(("-c", _BECOME, *command), {"GOGC": "200"}, program.log)
    process.start()
    return process


def _certificate(cluster: RealCluster) -> Tls:
    return Tls(cluster.ca, cluster.ca.with_suffix(".key"))


def _fates(pods: Callable[[str], Pod]) -> Callable[[Json, int], Fate]:
    def choose(pod: Json, attempt: int) -> Fate:
        course = pods(labels_of(pod).get("gryvia.io/job", metadata(pod)["name"]))
        return Fate(run=course.seconds, message=f'{{"score": {course.score}}}')

    return choose


def between(low: float, high: float, name: str) -> float:
    """The same for the same name, whoever asks."""
    return low + (high - low) * (zlib.crc32(name.encode()) % 1000) / 1000
