"""All pods of the node: which find a place, which have a worker, which are on their way out.

There is no scheduler: the node takes every pod that fits and marks the others Unschedulable, looking at those again
whenever a pod has ended. A pod under deletion is removed from the API when its processes have ended, and only then.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from gryvia_devcluster.clock import stamp
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.node.addresses import AddressBlock
from gryvia_devcluster.node.admission import extended_requests, refusal, unschedulable
from gryvia_devcluster.node.context import Context
from gryvia_devcluster.node.machine import node_labels
from gryvia_devcluster.node.pod import PodWorker
from gryvia_devcluster.types import Json

log = logging.getLogger(__name__)

_FINISHED = ("Succeeded", "Failed")


class PodSet:
    def __init__(self, context: Context, addresses: AddressBlock, group: asyncio.TaskGroup) -> None:
        self._context = context
        self._addresses = addresses
        self._group = group
        self._labels = node_labels(context.settings)
        self._rt = context.api.resource("", "pods")
        self._workers: dict[str, PodWorker] = {}
        self._waiting: dict[str, Json] = {}

    def changed(self, pod: Json, gone: bool) -> None:
        """A pod of the cluster was made, changed or removed."""
        uid = pod["metadata"]["uid"]
        worker = self._workers.get(uid)
        if gone:
            self._removed(pod, worker)
        elif worker is not None:
            worker.pod = pod
            if "deletionTimestamp" in pod["metadata"]:
                self._end(worker, pod)
        elif not pod["spec"].get("nodeName"):
            self._place(pod)
        elif pod["spec"]["nodeName"] == self._context.settings.name:
            self._take(pod)

    def world_changed(self) -> None:
        """Something a waiting volume may need has appeared."""
        for worker in self._workers.values():
            worker.world_changed.set()

    def worker(self, uid: str) -> PodWorker | None:
        return self._workers.get(uid)

    def is_running(self, uid: str, container: str) -> bool:
        worker = self._workers.get(uid)
        found = worker.container(container) if worker else None
        return found is not None and not found.record.has_ended

    def _place(self, pod: Json) -> None:
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            self._waiting.pop(meta["uid"], None)
            if pod.get("status", {}).get("phase") not in _FINISHED:
                self._write_status(pod, {**pod.get("status", {}), "phase": "Failed"})
            return
        if pod["spec"].get("schedulingGates"):
            return
        why = refusal(pod, self._labels, self._free())
        if why:
            first = meta["uid"] not in self._waiting
            self._waiting[meta["uid"]] = pod
            if first:
                self._event(pod, "FailedScheduling", why, warning=True)
                self._write_status(pod, unschedulable(pod, why, stamp(self._context.clock.now())))
            return
        self._waiting.pop(meta["uid"], None)
        self._bind(pod)

    def _bind(self, pod: Json) -> None:
        meta, name = pod["metadata"], self._context.settings.name
        body = {"spec": {"nodeName": name}}
        try:
            bound = self._context.api.patch(
                self._rt, meta["namespace"], meta["name"], body, "application/merge-patch+json", manager="scheduler"
            )
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            return
        if bound["metadata"]["uid"] != meta["uid"]:
            return
        self._event(bound, "Scheduled", f"Successfully assigned {meta['namespace']}/{meta['name']} to {name}")
        self._take(bound)

    def _take(self, pod: Json) -> None:
        status, meta = pod.get("status", {}), pod["metadata"]
        if status.get("phase") in _FINISHED:
            if "deletionTimestamp" in meta:
                self._delete(pod)
            return
        ip = status.get("podIP", "")
        if self._addresses.owns(ip):
            self._addresses.reserve(ip)
        else:
            ip = self._addresses.take_pod()
        worker = PodWorker(self._context, pod, ip)
        self._workers[meta["uid"]] = worker
        self._start(self._run(worker), pod)
        if "deletionTimestamp" in meta:
            self._end(worker, pod)

    def _start(self, work: Coroutine[Any, Any, None], pod: Json) -> None:
        self._group.create_task(self._guard(work, pod))

    async def _guard(self, work: Coroutine[Any, Any, None], pod: Json) -> None:
        try:
            await work
        except Exception as error:  # one pod's trouble must not end the node and with it every other pod
            log.exception("pod work failed", extra={"pod": pod["metadata"]["name"]})
            self._context.event(pod, "FailedSync", f"error syncing pod: {error}", "Warning")

    async def _run(self, worker: PodWorker) -> None:
        uid = worker.pod["metadata"]["uid"]
        try:
            await worker.run()
        finally:
            self._workers.pop(uid, None)
        current = self._context.find("pods", worker.pod["metadata"]["namespace"], worker.pod["metadata"]["name"])
        if current is not None and current["metadata"]["uid"] == uid and "deletionTimestamp" in current["metadata"]:
            self._delete(current)
        for pod in list(self._waiting.values()):
            self._place(pod)

    def _end(self, worker: PodWorker, pod: Json) -> None:
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds", 0))
        self._start(worker.stop(grace), pod)

    def _delete(self, pod: Json) -> None:
        meta = pod["metadata"]
        try:
            self._context.api.delete(self._rt, meta["namespace"], meta["name"], uid=meta["uid"], grace_seconds=0)
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise

    def _removed(self, pod: Json, worker: PodWorker | None) -> None:
        uid = pod["metadata"]["uid"]
        self._waiting.pop(uid, None)
        if pod["spec"].get("nodeName") == self._context.settings.name:
            self._start(self._clean_up(pod, worker), pod)

    async def _clean_up(self, pod: Json, worker: PodWorker | None) -> None:
        """After a forced deletion the processes may still run; they go first, then the folders and the address."""
        uid = pod["metadata"]["uid"]
        if worker is not None:
            await worker.stop(0.0)
        self._addresses.release(pod.get("status", {}).get("podIP", ""))
        await asyncio.to_thread(shutil.rmtree, self._context.layout.pod(uid), ignore_errors=True)

    def _free(self) -> Counter[str]:
        free = Counter({name: int(n) for name, n in self._context.allocatable.items() if "/" in name})
        for worker in self._workers.values():
            free.subtract(extended_requests(worker.pod))
        return free

    def _write_status(self, pod: Json, status: Json) -> None:
        meta = pod["metadata"]
        try:
            self._context.api.update(
                self._rt,
                meta["namespace"],
                meta["name"],
                {**pod, "status": status},
                subresource="status",
                manager="scheduler",
            )
        except ApiError as error:
            # A Conflict means a newer state of the pod is on its way here and will be looked at then.
            if error.reason not in ("NotFound", "Conflict"):
                raise

    def _event(self, pod: Json, reason: str, message: str, *, warning: bool = False) -> None:
        self._context.event(pod, reason, message, "Warning" if warning else "Normal", "default-scheduler")
