"""`python -m gryvia_devcluster`: a cluster alone, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from gryvia_devcluster.api.server import PortTaken
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings
from gryvia_devcluster.store import DamagedState


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gryvia_devcluster", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--data", type=Path, default=Path(".gryvia/devcluster"), help="logs, volumes, state")
    parser.add_argument("--persist", action="store_true", help="keep objects over restarts")
    parser.add_argument("--images", type=Path, help="images.yaml: what runs for which image")
    parser.add_argument("--kubeconfig", type=Path, help="write a kubeconfig here")
    parser.add_argument("--history", type=int, default=10_000, help="changes that a watcher may lag behind")
    parser.add_argument("--no-controllers", action="store_true")
    parser.add_argument("--no-node", action="store_true")
    return parser.parse_args()


async def _run(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    settings = Settings(
        data_dir=arguments.data.absolute(),
        host=arguments.host,
        port=arguments.port,
        persist=arguments.persist,
        images_file=arguments.images,
        history=arguments.history,
        controllers=not arguments.no_controllers,
        node=not arguments.no_node,
    )
    async with DevCluster(settings) as cluster:
        if arguments.kubeconfig:
            await cluster.write_kubeconfig(arguments.kubeconfig)
        print(f"Serving on {cluster.url}", flush=True)
        await stop.wait()


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    try:
        asyncio.run(_run(_arguments()))
    except (PortTaken, DamagedState) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
