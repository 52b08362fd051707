"""A devcluster with all kinds and no services: what the services would write a test writes itself."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gryvia_cli.__main__ import app
from gryvia_cli.platform.crds import connected, install_crds
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.catalogue import BY_NAME
from gryvia_common.kube.client import Kube, KubeSettings
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings


class Bench:
    """The command on one side, the API on the other."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def gryvia(self, *arguments: str, code: int = 0, input: str | None = None) -> str:
        """What it says, on either stream."""
        result = CliRunner().invoke(app, ["--kubeconfig", str(self.kubeconfig), *arguments], input=input)
        assert result.exit_code == code, result.output + repr(result.exception)
        assert code == 0 or result.stderr.count("\n") <= 1, result.stderr
        return result.stdout + result.stderr

    def running(self, *arguments: str) -> subprocess.Popen[str]:
        """The command as a process, to read from while it goes on."""
        command = [sys.executable, "-m", "gryvia_cli", "--kubeconfig", str(self.kubeconfig), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.gryvia(*arguments, "-o", "json", code=code))

    def put(self, manifest: str, status: dict[str, Any] | None = None) -> dict[str, Any]:
        """Make it, with this status."""
        obj = yaml.safe_load(manifest)
        obj["metadata"].setdefault("namespace", "default")
        resource = CONFIG_MAPS if obj["kind"] == "ConfigMap" else BY_NAME[obj["kind"]].resource

        async def work(kube: Kube) -> dict[str, Any]:
            made = await kube.create(resource, obj)
            if status is None:
                return made
            return await kube.patch(
                resource, "default", obj["metadata"]["name"], {"status": status}, subresource="status"
            )

        return self._run(work)

    def status(self, kind: str, name: str, status: dict[str, Any]) -> None:
        resource = BY_NAME[kind].resource
        self._run(lambda kube: kube.patch(resource, "default", name, {"status": status}, subresource="status"))

    def patch(self, kind: str, name: str, body: dict[str, Any]) -> None:
        self._run(lambda kube: kube.patch(BY_NAME[kind].resource, "default", name, body))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self._run(lambda kube: kube.get(BY_NAME[kind].resource, "default", name))

    def _run(self, work: Any) -> Any:
        async def connect() -> Any:
            async with connected(KubeSettings(kubeconfig=self.kubeconfig), SystemClock()) as kube:
                return await work(kube)

        return asyncio.run(connect())


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("cli")
    up, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with DevCluster(Settings(data_dir=folder, controllers=False, node=False)) as cluster:
            await cluster.write_kubeconfig(folder / "kubeconfig")
            up.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), name="devcluster", daemon=True)
    thread.start()
    assert up.wait(20)
    bench = Bench(folder / "kubeconfig")
    bench._run(lambda kube: install_crds(kube, SystemClock()))
    try:
        yield bench
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
