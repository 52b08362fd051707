"""What controllers ask of a pod: has it ended, is it ready, since when.

These are the predicates of k8s.io/kubernetes' pkg/api/v1/pod and controller_utils.go, kept in one place because the
Job, ReplicaSet, StatefulSet and Endpoints controllers must agree on them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from gryvia_devcluster.clock import parse
from gryvia_devcluster.types import Json


def phase(pod: Json) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def is_finished(pod: Json) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def is_deleting(obj: Json) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def is_active(pod: Json) -> bool:
    return not is_finished(pod) and not is_deleting(pod)


def condition(obj: Json, kind: str) -> Json | None:
    conditions: list[Json] = obj.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == kind), None)


def has_condition(obj: Json, kind: str) -> bool:
    found = condition(obj, kind)
    return found is not None and found["status"] == "True"


def is_ready(pod: Json) -> bool:
    return has_condition(pod, "Ready")


def available_at(pod: Json, min_ready_seconds: int) -> datetime | None:
    """When a ready pod counts as available; None for one that is not ready."""
    ready = condition(pod, "Ready")
    if ready is None or ready["status"] != "True":
        return None
    return parse(ready["lastTransitionTime"]) + timedelta(seconds=min_ready_seconds)


def finished_at(pod: Json) -> datetime:
    """When the last container ended; the moment of creation for a pod that never ran one."""
    statuses: list[Json] = pod.get("status", {}).get("containerStatuses") or []
    ends = [s["state"]["terminated"].get("finishedAt") for s in statuses if "terminated" in s.get("state", {})]
    known = [parse(end) for end in ends if end]
    return max(known) if known else parse(pod["metadata"]["creationTimestamp"])


def restarts(pod: Json) -> int:
    status = pod.get("status", {})
    groups = (status.get("initContainerStatuses") or [], status.get("containerStatuses") or [])
    return sum(s.get("restartCount", 0) for group in groups for s in group)


def owner_reference(owner: Json) -> Json:
    """The controller reference a child carries (metav1.NewControllerRef)."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(owner: Json, template: Json) -> Json:
    """A pod with the template's labels, annotations and spec, controlled by `owner`. The caller names it."""
    meta = template.get("metadata", {})
    metadata: Json = {
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(meta.get("labels") or {}),
        "annotations": dict(meta.get("annotations") or {}),
        "ownerReferences": [owner_reference(owner)],
    }
    if meta.get("finalizers"):
        metadata["finalizers"] = list(meta["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(template["spec"])}
