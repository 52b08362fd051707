"""What `kubectl get pods` prints of a pod: its status in one word, restarts, readiness.

The status word follows the real printer: the phase, then the pod's own reason, then whatever keeps a container from running.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gryvia_devcluster.api.durations import age
from gryvia_devcluster.types import Json


def ready(obj: Json, now: datetime) -> str:
    statuses = (obj.get("status") or {}).get("containerStatuses") or []
    running = sum(bool(item.get("ready")) for item in statuses)
    return f"{running}/{len(obj['spec'].get('containers') or [])}"


def restarts(obj: Json, now: datetime) -> str:
    statuses = (obj.get("status") or {}).get("containerStatuses") or []
    count = sum(item.get("restartCount", 0) for item in statuses)
    ends = [
        item["lastState"]["terminated"]["finishedAt"]
        for item in statuses
        if (item.get("lastState") or {}).get("terminated", {}).get("finishedAt")
    ]
    return f"{count} ({age(max(ends), now)} ago)" if count and ends else str(count)


def status(obj: Json, now: datetime) -> str:
    state: Json = obj.get("status") or {}
    reason = state.get("reason") or state.get("phase", "")
    if any(
        c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in state.get("conditions") or []
    ):
        reason = "SchedulingGated"
    starting = _init_reason(obj, state)
    reason = starting or _container_reason(state, reason)
    if obj["metadata"].get("deletionTimestamp") and state.get("phase") not in ("Succeeded", "Failed"):
        reason = "Unknown" if state.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _init_reason(obj: Json, state: Json) -> str:
    declared: list[Any] = obj["spec"].get("initContainers") or []
    sidecars = {item["name"] for item in declared if item.get("restartPolicy") == "Always"}
    for index, item in enumerate(state.get("initContainerStatuses") or []):
        what = item.get("state") or {}
        ended = what.get("terminated")
        if ended and ended.get("exitCode") == 0:
            continue
        if item["name"] in sidecars and item.get("started"):
            continue
        if ended:
            return f"Init:{_end_reason(ended)}"
        waiting = (what.get("waiting") or {}).get("reason")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{len(declared)}"
    return ""


def _end_reason(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _container_reason(state: Json, reason: str) -> str:
    running = False
    for item in reversed(state.get("containerStatuses") or []):
        what = item.get("state") or {}
        if (what.get("waiting") or {}).get("reason"):
            reason = what["waiting"]["reason"]
        elif what.get("terminated"):
            reason = _end_reason(what["terminated"])
        elif item.get("ready") and what.get("running"):
            running = True
    if reason == "Completed" and running:
        conditions = state.get("conditions") or []
        is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        return "Running" if is_ready else "NotReady"
    return reason


def gates(obj: Json, now: datetime) -> str:
    wanted = [gate["conditionType"] for gate in obj["spec"].get("readinessGates") or []]
    if not wanted:
        return "<none>"
    conditions = {c["type"]: c["status"] for c in (obj.get("status") or {}).get("conditions") or []}
    return f"{sum(conditions.get(kind) == 'True' for kind in wanted)}/{len(wanted)}"


def controller(obj: Json) -> str:
    for owner in obj["metadata"].get("ownerReferences") or []:
        if owner.get("controller"):
            return f"{owner['kind'].lower()}/{owner['name']}"
    return "<none>"


def since(stamp: str | None, now: datetime) -> str:
    return age(stamp, now) if stamp else "<none>"
