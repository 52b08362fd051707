"""A whole cluster in one object: registry, HTTP server, controllers and node, started and stopped together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType

from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.api.server import ApiServer
from gryvia_devcluster.bootstrap import bootstrap
from gryvia_devcluster.clock import Clock, RealClock
from gryvia_devcluster.kubeconfig import kubeconfig, load_token, write_private
from gryvia_devcluster.settings import Settings
from gryvia_devcluster.store import StateFile, Store
from gryvia_devcluster.types import PodLogs

log = logging.getLogger(__name__)


class DevCluster:
    """`async with DevCluster(Settings(...)) as cluster`. Raises PortTaken, DamagedState, or ValueError for a bad images file.
    `logs`: of the pods of a cluster without a node of its own, when somebody else plays one."""

    def __init__(self, settings: Settings, *, clock: Clock | None = None, logs: PodLogs | None = None) -> None:
        self.settings = settings
        self.token = ""
        self.url = ""
        self._clock = clock or RealClock()
        self._tasks: list[asyncio.Task[None]] = []
        self._file: StateFile | None = None
        self._logs = logs

    async def __aenter__(self) -> DevCluster:
        settings = self.settings
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        self.token = settings.token or load_token(settings.data_dir)
        if settings.persist:
            self._file = StateFile(settings.data_dir / "state.sqlite")
        self.registry = Registry(Store(history=settings.history, file=self._file), clock=self._clock)
        bootstrap(self.registry)
        self._server = ApiServer(self.registry, token=self.token, logs=lambda: self._logs)
        port = await self._server.start(settings.host, settings.port)
        self.url = f"http://{settings.host}:{port}"
        try:
            self._start_rooms()
        except ValueError:
            await self._stop()
            raise
        return self

    @property
    def api(self) -> Registry:
        return self.registry

    def _start_rooms(self) -> None:
        if self._file is not None:
            self._start("state file", self._file.run())
        if self.settings.controllers:
            from gryvia_devcluster.controllers import run_controllers

            self._start("controllers", run_controllers(self.registry, clock=self._clock))
        if self.settings.node:
            from gryvia_devcluster.node import Node

            node = Node(
                self.registry,
                data_dir=self.settings.data_dir,
                images_file=self.settings.images_file,
                clock=self._clock,
            )
            self._logs = node.logs
            self._start("node", node.run())

    def _start(self, name: str, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name=f"devcluster {name}")
        task.add_done_callback(_report)
        self._tasks.append(task)

    async def write_kubeconfig(self, path: Path) -> None:
        await asyncio.to_thread(write_private, path, kubeconfig(self.url, self.token))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def _stop(self) -> None:
        for task in reversed(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.stop()
        if self._file is not None:
            await self._file.close()


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("%s stopped", task.get_name(), exc_info=error)
