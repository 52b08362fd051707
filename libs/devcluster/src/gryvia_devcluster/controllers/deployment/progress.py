"""A Deployment's status: counts, and the conditions Available and Progressing that `kubectl rollout status` reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from gryvia_devcluster.clock import parse, stamp
from gryvia_devcluster.controllers.deployment.revisions import replicas_of
from gryvia_devcluster.controllers.deployment.rollout import bounds_of
from gryvia_devcluster.controllers.podstate import condition
from gryvia_devcluster.types import Json


def deployment_status(
    deployment: Json, new: Json | None, old: Sequence[Json], now: datetime
) -> tuple[Json, datetime | None]:
    """The status, and when the progress deadline has to be looked at."""
    everything = [*([new] if new else []), *old]
    total = sum(_count(rs, "replicas") for rs in everything)
    available = sum(_count(rs, "availableReplicas") for rs in everything)
    wanted = bounds_of(deployment).replicas
    counts = {
        "replicas": total,
        "updatedReplicas": _count(new, "replicas") if new else 0,
        "readyReplicas": sum(_count(rs, "readyReplicas") for rs in everything),
        "availableReplicas": available,
        "unavailableReplicas": max(max(total, wanted) - available, 0),
    }
    status: Json = {key: value for key, value in counts.items() if value}
    status["observedGeneration"] = deployment["metadata"].get("generation", 1)
    collisions = deployment.get("status", {}).get("collisionCount")
    if collisions:
        status["collisionCount"] = collisions
    progressing, deadline = _progressing(deployment, new, counts, now)
    conditions = [_available(deployment, available, now), progressing]
    status["conditions"] = [c for c in conditions if c is not None]
    return status, deadline


def _count(rs: Json, field: str) -> int:
    return int(rs.get("status", {}).get(field, 0))


def _available(deployment: Json, available: int, now: datetime) -> Json:
    bounds = bounds_of(deployment)
    if available >= bounds.replicas - bounds.unavailable:
        reason, message = "MinimumReplicasAvailable", "Deployment has minimum availability."
        return _condition(deployment, "Available", "True", reason, message, now)
    reason, message = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    return _condition(deployment, "Available", "False", reason, message, now)


def _progressing(
    deployment: Json, new: Json | None, counts: Json, now: datetime
) -> tuple[Json | None, datetime | None]:
    before = condition(deployment, "Progressing")
    if deployment["spec"].get("paused"):
        if before is not None and before["reason"] == "DeploymentPaused":
            return before, None
        return _condition(deployment, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now), None
    name = f'ReplicaSet "{new["metadata"]["name"]}"' if new else "ReplicaSet"
    if new is None:
        return _condition(deployment, "Progressing", "True", "NewReplicaSetCreated", f"Created new {name}", now), None
    if _complete(deployment, new, counts):
        if before is not None and before["reason"] == "NewReplicaSetAvailable":
            return before, None
        message = f"{name} has successfully progressed."
        return _condition(deployment, "Progressing", "True", "NewReplicaSetAvailable", message, now), None
    if before is None or _moved(deployment, counts) or before["reason"] == "DeploymentPaused":
        message = f"{name} is progressing."
        updated = _condition(deployment, "Progressing", "True", "ReplicaSetUpdated", message, now)
        return updated, _deadline(deployment, updated)
    deadline = _deadline(deployment, before)
    if before["reason"] == "ProgressDeadlineExceeded" or deadline is None or now < deadline:
        return before, (deadline if before["reason"] != "ProgressDeadlineExceeded" else None)
    reason, message = "ProgressDeadlineExceeded", f"{name} has timed out progressing."
    return _condition(deployment, "Progressing", "False", reason, message, now), None


def _complete(deployment: Json, new: Json, counts: Json) -> bool:
    wanted = bounds_of(deployment).replicas
    settled = counts["updatedReplicas"] == wanted == counts["replicas"] and counts["availableReplicas"] == wanted
    return settled and replicas_of(new) == wanted


def _moved(deployment: Json, counts: Json) -> bool:
    """More new pods, fewer old ones, or more ready or available ones than the status says."""
    before = deployment.get("status", {})

    def old(status: Json) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    changed_spec = before.get("observedGeneration") != deployment["metadata"].get("generation", 1)
    return changed_spec or any(counts[f] > before.get(f, 0) for f in grown) or old(counts) < old(before)


def _deadline(deployment: Json, progressing: Json) -> datetime | None:
    seconds = deployment["spec"].get("progressDeadlineSeconds", 600)
    if seconds is None or seconds >= 2**31 - 1:
        return None
    return parse(progressing["lastUpdateTime"]) + timedelta(seconds=seconds)


def _condition(deployment: Json, kind: str, value: str, reason: str, message: str, now: datetime) -> Json:
    before = condition(deployment, kind)
    same = before is not None and (before["status"], before["reason"], before["message"]) == (value, reason, message)
    if before is not None and same and kind != "Progressing":
        return before
    flipped = before is None or before["status"] != value
    return {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": message,
        "lastUpdateTime": stamp(now),
        "lastTransitionTime": stamp(now) if before is None or flipped else before["lastTransitionTime"],
    }
