"""`python -m tools.realcluster [folder]`: a real control plane until Ctrl-C, with a kubeconfig, for people.

Pods are run by the simulated node unless --no-node is given: nothing executes, but workloads live and end.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from tools.realcluster.cluster import RealCluster
from tools.realcluster.http import Http
from tools.realcluster.kubelet import Tls
from tools.realcluster.node import SimulatedNode
from tools.realcluster.programs import Failed, NotBuilt


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.realcluster", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="keep everything here (default: a temporary folder)")
    parser.add_argument("--scheduler", action="store_true", help="run kube-scheduler too")
    parser.add_argument("--no-node", action="store_true", help="no simulated node: pods stay pending")
    options = parser.parse_args()
    try:
        if options.folder is not None:
            _run(options.folder, options)
        else:
            with tempfile.TemporaryDirectory(prefix="gryvia-real-cluster-") as folder:
                _run(Path(folder), options)
    except (NotBuilt, Failed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(folder: Path, options: argparse.Namespace) -> None:
    with RealCluster(folder, scheduler=options.scheduler) as cluster:
        print(f"{cluster.url} is ready\nexport KUBECONFIG={cluster.kubeconfig}", flush=True)
        asyncio.run(_serve(cluster, node=not options.no_node))


async def _serve(cluster: RealCluster, *, node: bool) -> None:
    stopped = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
    async with AsyncExitStack() as stack:
        if node:
            api = await stack.enter_async_context(Http(cluster.url, cluster.token, cluster.ca))
            await stack.enter_async_context(SimulatedNode(api, tls=Tls(cluster.ca, cluster.ca.with_suffix(".key"))))
        await stopped.wait()


if __name__ == "__main__":
    sys.exit(main())
