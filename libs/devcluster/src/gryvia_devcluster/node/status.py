"""The pod status the kubelet would write: phase, conditions and container statuses. Pure.

Phase follows kubelet's getPhase, conditions its status/generate.go. Conditions of other writers (DisruptionTarget, readiness
gates) are kept; a lastTransitionTime moves only when its status flips.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gryvia_devcluster.clock import stamp
from gryvia_devcluster.node.state import ContainerRecord, PodRecord, Running, State, Terminated, Waiting
from gryvia_devcluster.types import Json

_OWN = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def pod_status(pod: Json, record: PodRecord, host_ip: str, now: datetime) -> Json:
    phase = pod_phase(pod, record)
    old = pod.get("status", {})
    status: Json = {key: value for key, value in old.items() if key not in ("reason", "message")}
    status |= {
        "phase": phase,
        "conditions": _conditions(old, pod, record, phase, now),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": record.ip,
        "podIPs": [{"ip": record.ip}],
        "startTime": stamp(record.started),
        "containerStatuses": _statuses(pod, "containers", record.main),
    }
    if record.init:
        status["initContainerStatuses"] = _statuses(pod, "initContainers", record.init)
    if record.failure:
        status["reason"], status["message"] = record.failure
    return status


def pod_phase(pod: Json, record: PodRecord) -> str:
    policy = pod["spec"].get("restartPolicy", "Always")
    ended = all(r.has_ended or (record.failure and not isinstance(r.state, Running)) for r in record.main)
    if record.failure:
        return "Failed" if ended else "Running"
    if not record.initialized:
        return _phase_while_initializing(record, policy)
    if any(isinstance(r.state, Running) for r in record.init if r.sidecar) and ended:
        return "Running"
    if record.deleting and ended:
        return "Succeeded" if all(r.succeeded for r in record.main) else "Failed"
    if any(isinstance(r.state, Waiting) and r.last is None for r in record.main):
        return "Pending"
    if any(isinstance(r.state, Running) for r in record.main) or policy == "Always":
        return "Running"
    if all(r.succeeded for r in record.main):
        return "Succeeded"
    return "Failed" if policy == "Never" and all(r.has_ended for r in record.main) else "Running"


def _phase_while_initializing(record: PodRecord, policy: str) -> str:
    broken = any(isinstance(r.state, Terminated) and r.state.exit_code != 0 and not r.sidecar for r in record.init)
    if broken and (policy == "Never" or record.deleting):
        return "Failed"
    if record.deleting and not any(isinstance(r.state, Running) for r in [*record.init, *record.main]):
        return "Failed"
    return "Pending"


def _conditions(old: Json, pod: Json, record: PodRecord, phase: str, now: datetime) -> list[Json]:
    over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    missing = [r.name for r in record.init if not r.succeeded and not (r.sidecar and r.started)]
    uninitialized = [] if record.initialized else missing
    unready = [r.name for r in record.main if not r.ready] + [r.name for r in record.init if r.sidecar and not r.ready]
    ready_reason = over or "ContainersNotReady"
    ready_message = "" if over else f"containers with unready status: [{' '.join(unready)}]"
    ready = not unready and not over
    wanted = [
        _condition("PodReadyToStartContainers", record.volumes_ready and not over),
        _condition(
            "Initialized",
            not uninitialized,
            ("PodCompleted" if phase == "Succeeded" else "") if not uninitialized else "ContainersNotInitialized",
            f"containers with incomplete status: [{' '.join(uninitialized)}]" if uninitialized else "",
        ),
        _condition(
            "Ready", ready and _gates_open(old, pod), "" if ready else ready_reason, "" if ready else ready_message
        ),
        _condition("ContainersReady", ready, "" if ready else ready_reason, "" if ready else ready_message),
        _condition("PodScheduled", True),
    ]
    if record.interrupted and phase == "Failed":
        # By no fault of the container: a Job's podFailurePolicy can tell it from a crash, as at a real node's shutdown.
        message = "the node went down while the pod ran"
        wanted.append(_condition("DisruptionTarget", True, "TerminationByKubelet", message))
    before = {c["type"]: c for c in old.get("conditions") or ()}
    ours = {c["type"] for c in wanted} | {*_OWN}
    kept = [c for kind, c in before.items() if kind not in ours]
    return [*(_timed(c, before.get(c["type"]), now) for c in wanted), *kept]


def _gates_open(old: Json, pod: Json) -> bool:
    conditions = {c["type"]: c["status"] for c in old.get("conditions") or ()}
    gates = pod["spec"].get("readinessGates") or ()
    return all(conditions.get(gate["conditionType"]) == "True" for gate in gates)


def _condition(kind: str, value: bool, reason: str = "", message: str = "") -> Json:
    condition = {"type": kind, "status": str(value), "lastProbeTime": None}
    return condition | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})


def _timed(wanted: Json, before: Json | None, now: datetime) -> Json:
    same = before is not None and before["status"] == wanted["status"]
    return {**wanted, "lastTransitionTime": before["lastTransitionTime"] if before and same else stamp(now)}


def _statuses(pod: Json, group: str, records: Sequence[ContainerRecord]) -> list[Json]:
    specs = {container["name"]: container for container in pod["spec"][group]}
    return [_container_status(record, specs[record.name]) for record in records]


def _container_status(record: ContainerRecord, spec: Json) -> Json:
    resources = spec.get("resources")
    return {
        "name": record.name,
        "state": state_json(record.state),
        "lastState": state_json(record.last) if record.last else {},
        "ready": record.ready,
        "restartCount": record.restarts,
        "image": record.image,
        "imageID": f"devcluster://{record.image}" if record.container_id else "",
        "started": record.started,
        **({"containerID": record.container_id} if record.container_id else {}),
        **({"resources": resources, "allocatedResources": resources.get("requests", {})} if resources else {}),
    }


def state_json(state: State) -> Json:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        case Running(since):
            return {"running": {"startedAt": stamp(since)}}
        case Terminated():
            ended: Json = {
                "exitCode": state.exit_code,
                "reason": state.reason,
                "startedAt": stamp(state.started) if state.started else None,
                "finishedAt": stamp(state.finished),
                "containerID": state.container_id,
                "message": state.message,
            }
            return {"terminated": {key: value for key, value in ended.items() if value not in (None, "")}}
