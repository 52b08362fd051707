"""The two API servers that everything is measured on, each a process of its own, without a node unless a measure brings one.

devcluster runs as `python -m bench.devcluster`: itself, with empty logs for the pods that a simulated node plays.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.realcluster.cluster import RealCluster
from tools.realcluster.kubelet import Tls
from tools.realcluster.programs import NotBuilt, find_programs

from bench.programs import python, text_of
from bench.results import Line
from gryvia_common.kube.objects import Json
from gryvia_common.runtime.logs import configure_logs

DEVCLUSTER, REAL = "devcluster", "kube-apiserver"
Audit = Callable[[], Iterator[Json]]


@dataclass(frozen=True, slots=True)
class Cluster:
    """`server_pids`: the API server and its storage. `audit`: every request so far, where the server keeps account of them."""

    name: str
    kubeconfig: Path
    url: str
    token: str
    server_pids: tuple[int, ...]
    ca: Path | None = None
    tls: Tls | None = None
    audit: Audit | None = None


Opens = Callable[[Path, bool], AbstractAsyncContextManager[Cluster]]
Measure = Callable[[Cluster, Path], Awaitable[list[Line]]]


@asynccontextmanager
async def devcluster(folder: Path, controllers: bool) -> AsyncIterator[Cluster]:
    kubeconfig = folder / "kubeconfig"
    flags = ("--controllers",) if controllers else ()
    async with python("-m", "bench.devcluster", str(folder), *flags, log=folder / "cluster.log") as program:
        text = await text_of(kubeconfig, program)
        url, _, token = json.loads(text)["clusters"][0]["cluster"]["server"].partition("/token/")
        yield Cluster(DEVCLUSTER, kubeconfig, url, token, (program.pid,))


@asynccontextmanager
async def real(folder: Path, controllers: bool) -> AsyncIterator[Cluster]:
    cluster = RealCluster(folder, controllers=controllers)
    await asyncio.to_thread(cluster.start)
    try:
        pids = tuple(program.process.pid for program in cluster.programs.values())
        tls = Tls(cluster.ca, cluster.ca.with_suffix(".key"))
        yield Cluster(REAL, cluster.kubeconfig, cluster.url, cluster.token, pids, cluster.ca, tls, cluster.audit)
    finally:
        await asyncio.to_thread(cluster.stop)


def on_each(measure: Measure, *, controllers: bool = False) -> Iterable[Line]:
    """The measure on devcluster, then on a real API server where `make kube-tools` has built one; each in a new folder."""
    configure_logs(level="error")
    opens: list[Opens] = [devcluster]
    try:
        find_programs()
        opens.append(real)
    except NotBuilt as missing:
        print(f"not measured on a real API server: {missing}", file=sys.stderr)
    for open_ in opens:
        with tempfile.TemporaryDirectory() as folder:
            yield from asyncio.run(_once(open_, measure, Path(folder), controllers))


async def _once(open_: Opens, measure: Measure, folder: Path, controllers: bool) -> list[Line]:
    place = folder / "cluster"
    place.mkdir()
    async with open_(place, controllers) as cluster:
        return await measure(cluster, folder)
