"""What admission plugins add to a new pod: its account, its priority, and how long it stays on a node that is lost.

Nobody owns these fields: they come after the creator's have been noted. The token volume of a real cluster is left out, because this
cluster makes no tokens and its pods have no place for one (docs/devcluster.md).
"""

from __future__ import annotations

from gryvia_devcluster.types import Json

_LOST_NODE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_LOST_SECONDS = 300


def admit_pod(pod: Json, now: str) -> None:
    """In place, before the pod is stored for the first time."""
    spec = pod["spec"]
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("priority", 0)
    tolerated = spec.get("tolerations") or []
    missing = [taint for taint in _LOST_NODE if not any(_tolerates(each, taint) for each in tolerated)]
    spec["tolerations"] = [*tolerated, *map(_for_a_while, missing)]
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [_gated(now)]


def _tolerates(toleration: Json, taint: str) -> bool:
    return toleration.get("key") in (None, "", taint) and toleration.get("effect") in (None, "", "NoExecute")


def _for_a_while(taint: str) -> Json:
    return {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _LOST_SECONDS}


def _gated(now: str) -> Json:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
