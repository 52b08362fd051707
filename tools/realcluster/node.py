"""A simulated node: pods are bound, run, get ready and end on a schedule, without a process behind them; thousands at once.

It does to the API what a scheduler and a kubelet do, and no more: binding, status writes, the node's Lease, and the last
step of a deletion (terminal phase first, as the kubelet has it, then removal). So the controllers under test, those of
kube-controller-manager or devcluster's, see pods live and die in seconds. What a pod does is its `Fate`: from its annotations,
or from the function a test hands over. With a certificate it also serves logs as a kubelet does (`tls`), which a real
API server fetches from the node.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import count
from types import TracebackType
from typing import Any

from tools.realcluster.http import MERGE, Answer, Events, Http, Refused
from tools.realcluster.kubelet import LogServer, Tls, Written

Json = dict[str, Any]

ANNOTATION = "simulated-node/fate"
_CONCURRENCY = 64
_LEASE_SECONDS = 10.0
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Fate:
    """Seconds until the containers run, seconds they then run (None: until the pod is deleted), and how they end.

    `message` is the termination message of each container. `conditions` are further pod conditions at the end (a disruption,
    say); `reason` is the pod's own, as for an eviction.
    """

    start: float = 0.0
    run: float | None = 0.0
    exit_code: int = 0
    ready: bool = True
    message: str = ""
    reason: str = ""
    log: str = ""
    conditions: tuple[tuple[str, str], ...] = ()


Choose = Callable[[Json, int], Fate]


def annotated_fate(pod: Json, attempt: int) -> Fate:
    """What the annotation `simulated-node/fate` says, as JSON of Fate's fields; else: a pod that restarts runs for ever and
    any other succeeds at once."""
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return Fate(run=None if pod["spec"].get("restartPolicy", "Always") == "Always" else 0.0)
    told = json.loads(text)
    conditions = tuple((type_, reason) for type_, reason in told.pop("conditions", ()))
    return Fate(**told, conditions=conditions)


def named_fates(fates: Mapping[str, Fate], otherwise: Choose = annotated_fate) -> Choose:
    """The fate of the first pattern (`*` and `?`) that the pod's name fits: what it writes, and how it ends."""

    def choose(pod: Json, attempt: int) -> Fate:
        name = pod["metadata"]["name"]
        found = next((fate for pattern, fate in fates.items() if fnmatchcase(name, pattern)), None)
        return found or otherwise(pod, attempt)

    return choose


class SimulatedNode:
    """`async with SimulatedNode(api):` runs every pod of the cluster that is bound to it or to nobody."""

    def __init__(
        self, api: Http, choose: Choose = annotated_fate, *, name: str = "simulated", tls: Tls | None = None
    ) -> None:
        self.name = name
        self._api = api
        self._choose = choose
        self._latest: dict[str, Json] = {}
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._gate = asyncio.Semaphore(_CONCURRENCY)
        self._addresses = count(1)
        self._logs = LogServer(tls) if tls else None
        self._loops: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> SimulatedNode:
        port = await self._logs.start() if self._logs else 0
        await self._register(port)
        version = await self._list()
        self._loops = [
            asyncio.create_task(self._follow(version), name="simulated node"),
            asyncio.create_task(self._renew(), name="simulated node's lease"),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = [*self._loops, *self._lives.values()]
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        if self._logs:
            await self._logs.stop()
        failed = [found for found in ended if isinstance(found, Exception)]
        if failed and error is None:
            raise ExceptionGroup("the simulated node failed", failed)

    async def _register(self, port: int) -> None:
        node: Json = {"metadata": {"name": self.name, "labels": {"kubernetes.io/hostname": self.name}}}
        await self._tolerating(409, "POST", "/api/v1/nodes", node)
        now = _now()
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}
        status: Json = {
            "capacity": {"cpu": "10000", "memory": "10000Gi", "pods": "100000"},
            "allocatable": {"cpu": "10000", "memory": "10000Gi", "pods": "100000"},
            "conditions": [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": self.name}],
        }
        if port:
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
        await self._api.ok("PATCH", f"/api/v1/nodes/{self.name}/status", {"status": status}, content_type=MERGE)

    async def _renew(self) -> None:
        """Without it the controller manager takes the node for lost after forty seconds and evicts its pods."""
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        lease = {
            "metadata": {"name": self.name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": self.name, "leaseDurationSeconds": 40},
        }
        await self._tolerating(409, "POST", path, lease)
        while True:
            spec = {"renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
            await self._api("PATCH", f"{path}/{self.name}", {"spec": spec}, content_type=MERGE)
            await asyncio.sleep(_LEASE_SECONDS)

    async def _list(self) -> str:
        """Take in all pods; the version to watch from."""
        found = await self._api.ok("GET", "/api/v1/pods")
        for pod in found["items"]:
            self._take(pod)
        return str(found["metadata"]["resourceVersion"])

    async def _follow(self, version: str) -> None:
        while True:
            path = f"/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=300"
            try:
                async with self._api.watch(path) as events:
                    version = await self._read(events, version)
            except (OSError, TimeoutError, Refused):
                await asyncio.sleep(_PAUSE_SECONDS)
            if version == "":
                version = await self._list()

    async def _read(self, events: Events, version: str) -> str:
        """The version to go on from; empty when the list has to be read again."""
        while (event := await events.next(seconds=310)) is not None:
            obj = event["object"]
            if event["type"] == "ERROR":
                return ""
            version = obj["metadata"]["resourceVersion"]
            if event["type"] == "DELETED":
                self._forget(obj)
            elif event["type"] != "BOOKMARK":
                self._take(obj)
        return version

    def _take(self, pod: Json) -> None:
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        if spec.get("nodeName", self.name) != self.name or spec.get("schedulingGates"):
            return
        known = self._latest.get(uid)
        self._latest[uid] = pod
        deleting = "deletionTimestamp" in pod["metadata"]
        if deleting and not (known and "deletionTimestamp" in known["metadata"]):
            self._begin(uid, self._remove(pod))
        elif known is None and not deleting and not _ended(pod):
            self._begin(uid, self._live(uid))

    def _begin(self, uid: str, work: Any) -> None:
        if (running := self._lives.get(uid)) is not None:
            running.cancel()
        self._lives[uid] = asyncio.create_task(work, name=f"simulated pod {uid}")

    def _forget(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        self._latest.pop(uid, None)
        if (life := self._lives.pop(uid, None)) is not None:
            life.cancel()

    async def _live(self, uid: str) -> None:
        """Whatever goes wrong because the pod has gone meanwhile is no matter."""
        pod = self._latest[uid]
        if not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": self.name}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": _identity(pod), "target": target}
            if (await self._send("POST", _path(pod, "binding"), binding)).code >= 300:
                return
        for attempt in count():
            fate = self._choose(self._latest.get(uid, pod), attempt)
            await asyncio.sleep(fate.start)
            started, address = _now(), _address(next(self._addresses))
            if self._logs:
                place = (pod["metadata"]["namespace"], pod["metadata"]["name"])
                self._logs.written[place] = Written(datetime.now(UTC), fate.log)
            await self._write(uid, _running(pod, fate, attempt, started, address))
            if fate.run is None:
                return
            await asyncio.sleep(fate.run)
            policy = pod["spec"].get("restartPolicy", "Always")
            if policy == "Never" or (policy == "OnFailure" and fate.exit_code == 0):
                await self._write(uid, _terminated(pod, fate, attempt, started))
                return

    async def _remove(self, pod: Json) -> None:
        if pod["spec"].get("nodeName") and not _ended(pod):
            await self._write(pod["metadata"]["uid"], _terminated(pod, Fate(exit_code=137), 0, _now()))
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        await self._send("DELETE", _path(pod), options)

    async def _write(self, uid: str, status: Json) -> None:
        pod = self._latest.get(uid)
        if pod is None:
            return
        mine = {condition["type"] for condition in status["conditions"]}
        kept = [c for c in (pod.get("status") or {}).get("conditions") or () if c["type"] not in mine]
        status = {**status, "conditions": [*kept, *status["conditions"]]}
        await self._send("PATCH", _path(pod, "status"), {"metadata": {"uid": uid}, "status": status}, MERGE)

    async def _send(self, method: str, path: str, body: Json, content_type: str = "application/json") -> Answer:
        """A pod that has gone or been changed by others is no error; anything else is."""
        async with self._gate:
            answer = await self._api(method, path, body, content_type=content_type)
        if answer.code >= 300 and answer.code not in (404, 409, 422):
            raise Refused(method, path, answer)
        return answer

    async def _tolerating(self, code: int, method: str, path: str, body: Json) -> None:
        try:
            await self._api.ok(method, path, body)
        except Refused as error:
            if error.answer.code != code:
                raise


def _running(pod: Json, fate: Fate, attempt: int, started: str, address: str) -> Json:
    state: Json = {"running": {"startedAt": started}}
    containers = [_container(spec, state, attempt, ready=fate.ready) for spec in pod["spec"]["containers"]]
    return {
        "phase": "Running",
        "startTime": started,
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions(started, fate.ready),
        "containerStatuses": containers,
    }


def _terminated(pod: Json, fate: Fate, attempt: int, started: str) -> Json:
    now = _now()
    ended: Json = {"exitCode": fate.exit_code, "reason": "Error" if fate.exit_code else "Completed"}
    ended |= {"startedAt": started, "finishedAt": now}
    if fate.message:
        ended["message"] = fate.message
    further = [
        {"type": type_, "status": "True", "reason": reason, "lastTransitionTime": now}
        for type_, reason in fate.conditions
    ]
    status: Json = {
        "phase": "Failed" if fate.exit_code else "Succeeded",
        "conditions": [*_conditions(now, False), *further],
        "containerStatuses": [
            _container(spec, {"terminated": ended}, attempt, ready=False) for spec in pod["spec"]["containers"]
        ],
    }
    if fate.reason:
        status["reason"] = fate.reason
    return status


def _container(spec: Json, state: Json, attempt: int, *, ready: bool) -> Json:
    return {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": f"simulated://{spec['image']}",
        "ready": ready,
        "started": "running" in state,
        "restartCount": attempt,
        "state": state,
    }


def _conditions(now: str, ready: bool) -> list[Json]:
    states = {"PodScheduled": True, "Initialized": True, "ContainersReady": ready, "Ready": ready}
    return [{"type": type_, "status": str(state), "lastTransitionTime": now} for type_, state in states.items()]


def _ended(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _identity(pod: Json) -> Json:
    return {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}


def _path(pod: Json, subresource: str = "") -> str:
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    return f"{path}/{subresource}" if subresource else path


def _address(number: int) -> str:
    """Of the range set aside for measurements, so nobody's."""
    return f"198.18.{number // 250 % 256}.{number % 250 + 1}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
