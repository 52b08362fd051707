"""The node: one machine that takes every pod and runs it as local processes.

It registers itself, follows the pods and the things they need, and keeps everything else in the rooms beside it: podset.py
(which pods run), pod.py and container.py (how they live), network.py (names and services). When it is cancelled its
launcher goes, and with that every process of every pod.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from gryvia_devcluster.clock import Clock
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.node.addresses import AddressBlock
from gryvia_devcluster.node.context import Context, Settings
from gryvia_devcluster.node.follow import Follower
from gryvia_devcluster.node.images import Images, make_bin_dir
from gryvia_devcluster.node.layout import Layout
from gryvia_devcluster.node.logs import ContainerLogs
from gryvia_devcluster.node.machine import capacity, node_object, node_status
from gryvia_devcluster.node.network import Network
from gryvia_devcluster.node.podset import PodSet
from gryvia_devcluster.node.process.spawner import Spawner
from gryvia_devcluster.node.recovery import kill_leftovers
from gryvia_devcluster.types import Api, Json, PodLogs

_AWAITED = ("configmaps", "secrets", "persistentvolumeclaims")


class Node:
    def __init__(
        self,
        api: Api,
        *,
        data_dir: Path,
        images_file: Path | None = None,
        clock: Clock,
        settings: Settings | None = None,
    ) -> None:
        """Raises ValueError for a malformed images file."""
        self._api = api
        self._clock = clock
        self._layout = Layout(data_dir.resolve())
        self._settings = settings or Settings()
        self._images = Images(images_file, self._layout.bin)
        self._pods: PodSet | None = None
        self.logs: PodLogs = ContainerLogs(self._layout, self._is_running)

    async def run(self) -> None:
        """Until cancelled."""
        for folder in (self._layout.pods, self._layout.names, self._layout.scratch):
            folder.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(kill_leftovers, self._layout.pods)
        make_bin_dir(self._layout.bin)
        spawner = Spawner(self._layout.scratch, sandboxed=self._settings.sandboxed)
        with AddressBlock(self._layout.root / "address-block") as addresses:
            async with spawner:
                await self._serve(addresses, spawner)

    async def execute(self, pod: Json, container: str, command: list[str]) -> tuple[bool, str]:
        """Run a command in a running container: whether it succeeded, and what it wrote."""
        worker = self._pods.worker(pod["metadata"]["uid"]) if self._pods else None
        found = worker.container(container) if worker else None
        if found is None:
            raise ApiError("BadRequest", f'container "{container}" of pod "{pod["metadata"]["name"]}" is not running')
        return await found.execute(command)

    async def _serve(self, addresses: AddressBlock, spawner: Spawner) -> None:
        amounts = capacity(self._layout.root, self._settings.gpus)
        network = Network(self._api, self._clock, self._layout, addresses)
        context = Context(
            api=self._api,
            clock=self._clock,
            layout=self._layout,
            settings=self._settings,
            spawner=spawner,
            images=self._images,
            allocatable=amounts,
            host_ip=addresses.node,
            names_file=str(network.names_file),
            hosts_file=network.hosts_file,
            service_env=network.service_env,
        )
        self._register(amounts, addresses.node)
        async with asyncio.TaskGroup() as group:
            pods = self._pods = PodSet(context, addresses, group)

            def pod_changed(pod: Json, gone: bool) -> None:
                network.pod_changed(pod, gone)
                pods.changed(pod, gone)

            group.create_task(spawner.watch())
            group.create_task(network.run())
            for resource in _AWAITED:
                group.create_task(self._follower(resource, lambda obj, gone: pods.world_changed()).run())
            group.create_task(self._follower("persistentvolumes", self._volume_changed).run())
            group.create_task(self._follower("pods", pod_changed).run())

    def _follower(self, resource: str, changed: Callable[[Json, bool], None]) -> Follower:
        return Follower(self._api, self._api.resource("", resource), self._clock, changed)

    def _register(self, amounts: dict[str, str], host_ip: str) -> None:
        rt, now = self._api.resource("", "nodes"), self._clock.now()
        wanted = node_object(self._settings, amounts, host_ip, now)
        try:
            current = self._api.create(rt, None, wanted)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            current = self._api.get(rt, None, self._settings.name)
        status = node_status(self._settings, amounts, host_ip, now)
        self._api.update(rt, None, self._settings.name, {**current, "status": status}, subresource="status")

    def _volume_changed(self, volume: Json, gone: bool) -> None:
        if gone:
            shutil.rmtree(self._layout.persistent(volume["metadata"]["name"]), ignore_errors=True)

    def _is_running(self, uid: str, container: str) -> bool:
        return self._pods is not None and self._pods.is_running(uid, container)
