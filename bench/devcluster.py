"""`python -m bench.devcluster <folder> [--controllers]`: devcluster without a node of its own, until SIGTERM.

What a simulated node runs writes nothing, so every log is empty; plain devcluster would refuse to read one.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings
from gryvia_devcluster.types import Json


class Silent:
    """The logs of pods that write nothing."""

    def path(self, pod: Json, container: str, *, previous: bool = False) -> Path:
        return Path("/nonexistent")

    def ended(self, pod: Json, container: str) -> bool:
        return True


async def serve(folder: Path, *, controllers: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    settings = Settings(data_dir=folder / "data", node=False, controllers=controllers)
    async with DevCluster(settings, logs=Silent()) as cluster:
        await cluster.write_kubeconfig(folder / "kubeconfig")
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), controllers="--controllers" in sys.argv))
