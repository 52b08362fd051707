"""The life of one pod: volumes, init containers, main containers, deadline, end.

The worker owns the pod's records and is the only writer of its status; changes within one turn of the event loop are
published as one write. It ends when every container has ended for good; the node then removes the pod if it is being deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from gryvia_devcluster.clock import parse
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.node.backoff import sleep_unless
from gryvia_devcluster.node.container import Container
from gryvia_devcluster.node.context import Context
from gryvia_devcluster.node.recovery import restore_record
from gryvia_devcluster.node.state import ContainerRecord, PodRecord, Waiting
from gryvia_devcluster.node.status import pod_status
from gryvia_devcluster.node.volumes import NotMounted, prepare_volumes
from gryvia_devcluster.types import Json

_SIDECAR_GRACE = 2.0


class PodWorker:
    def __init__(self, context: Context, pod: Json, ip: str) -> None:
        self.pod = pod
        self.folders: Mapping[str, Path] = {}
        self.world_changed = asyncio.Event()
        self._context = context
        self._stopping = asyncio.Event()
        self._kill_at_once = False
        self._publishing = False
        self._record = self._make_record(ip)
        self._init = [self._container(spec, r) for spec, r in zip(_init_specs(pod), self._record.init, strict=True)]
        self._main = [
            self._container(spec, r) for spec, r in zip(pod["spec"]["containers"], self._record.main, strict=True)
        ]

    @property
    def ip(self) -> str:
        return self._record.ip

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    async def run(self) -> None:
        self._write_status()
        tasks: list[asyncio.Task[None]] = []
        try:
            tasks.append(asyncio.create_task(self._watch_deadline()))
            if await self._mount() and await self._run_init(tasks):
                await self._together(container.run() for container in self._main)
            await self._stop_sidecars()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for container in [*self._init, *self._main]:
            if self.stopping:
                container.settle()
        self._write_status()

    async def stop(self, grace: float) -> None:
        """Begin the end: no restarts from now on. Asked again with a shorter grace, the shorter one holds."""
        self._record.deleting = self._record.deleting or self._record.failure is None
        again = self.stopping
        self._stopping.set()
        everyone = [*self._init, *self._main]
        if again and grace <= 0:
            for container in everyone:
                container.kill()
        await self._together(container.stop(grace) for container in everyone)

    def container(self, name: str) -> Container | None:
        return next((c for c in [*self._init, *self._main] if c.record.name == name), None)

    async def _mount(self) -> bool:
        """Wait until every volume is there; False when stopped before."""
        meta, reported = self.pod["metadata"], ""
        while not self.stopping:
            self.world_changed.clear()
            try:
                self.folders = prepare_volumes(
                    self.pod,
                    self._context.layout,
                    self._context.reader(meta["namespace"]),
                    lambda name: self._context.find("persistentvolumeclaims", meta["namespace"], name),
                    self._context.allocatable,
                )
            except NotMounted as problem:
                if str(problem) != reported:
                    reported = str(problem)
                    self._context.event(self.pod, "FailedMount", f"MountVolume.SetUp failed: {reported}", "Warning")
                await self._changed_or_stopped()
            else:
                self._record.volumes_ready = True
                return True
        return False

    async def _changed_or_stopped(self) -> None:
        waits = [asyncio.create_task(event.wait()) for event in (self.world_changed, self._stopping)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _run_init(self, tasks: list[asyncio.Task[None]]) -> bool:
        """Init containers one after another; a sidecar only has to have started."""
        for container in self._init:
            if self.stopping:
                return False
            if container.record.sidecar:
                tasks.append(asyncio.create_task(container.run()))
                await container.until_started()
                continue
            await container.run()
            if not container.record.succeeded:
                return False
        self._record.initialized = True
        for record in self._record.main:
            if isinstance(record.state, Waiting) and record.state.reason == "PodInitializing":
                record.state = Waiting("ContainerCreating")
        return not self.stopping

    async def _stop_sidecars(self) -> None:
        await self._together(c.stop(_SIDECAR_GRACE) for c in reversed(self._init) if c.record.sidecar)

    async def _watch_deadline(self) -> None:
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        if seconds is None:
            return
        end = self._record.started + timedelta(seconds=seconds)
        pause = (end - self._context.clock.now()).total_seconds()
        if await sleep_unless(self._stopping, self._context.clock, pause):
            return
        message = "Pod was active on the node longer than the specified deadline"
        self._record.failure = ("DeadlineExceeded", message)
        self._context.event(self.pod, "DeadlineExceeded", message)
        await self.stop(float(self.pod["spec"].get("terminationGracePeriodSeconds", 30)))

    @staticmethod
    async def _together(work: Any) -> None:
        async with asyncio.TaskGroup() as group:
            coroutine: Coroutine[Any, Any, None]
            for coroutine in work:
                group.create_task(coroutine)

    def _make_record(self, ip: str) -> PodRecord:
        status = self.pod.get("status", {})
        started = parse(status["startTime"]) if status.get("startTime") else self._context.clock.now()
        now = self._context.clock.now()
        has_init = bool(_init_specs(self.pod))
        first = "PodInitializing" if has_init else "ContainerCreating"
        init = [restore_record(spec, status, "PodInitializing", now) for spec in _init_specs(self.pod)]
        main = [restore_record(spec, status, first, now) for spec in self.pod["spec"]["containers"]]
        running = [s for key in ("initContainerStatuses", "containerStatuses") for s in status.get(key) or ()]
        interrupted = any("running" in (s.get("state") or {}) for s in running)
        return PodRecord(
            init=init, main=main, ip=ip, started=started, initialized=not has_init, interrupted=interrupted
        )

    def _container(self, spec: Json, record: ContainerRecord) -> Container:
        policy = self.pod["spec"].get("restartPolicy", "Always")
        if any(record is other for other in self._record.init):
            policy = "Always" if record.sidecar else ("Never" if policy == "Never" else "OnFailure")
        return Container(self._context, self, spec, record, policy, self._publish_soon)

    def _publish_soon(self) -> None:
        if not self._publishing:
            self._publishing = True
            asyncio.get_running_loop().call_soon(self._write_status)

    def _write_status(self) -> None:
        self._publishing = False
        meta = self.pod["metadata"]
        current = self._context.find("pods", meta["namespace"], meta["name"])
        if current is None or current["metadata"]["uid"] != meta["uid"]:
            return
        self.pod = current
        status = pod_status(current, self._record, self._context.host_ip, self._context.clock.now())
        if status == current.get("status"):
            return
        rt = self._context.api.resource("", "pods")
        wanted = {**current, "status": status}
        try:
            self.pod = self._context.api.update(
                rt, meta["namespace"], meta["name"], wanted, subresource="status", manager="kubelet"
            )
        except ApiError as error:
            if error.reason != "NotFound":
                raise


def _init_specs(pod: Json) -> list[Json]:
    return list(pod["spec"].get("initContainers") or [])
