"""What a DELETE does to an object: remove it, or mark it and leave it to its finalizers, its node or its namespace.

Pure. A bound pod that still runs is only marked, with the end of its grace period as deletionTimestamp; the node deletes it
again with grace 0 when its processes have ended. A namespace stays while spec.finalizers names `kubernetes`, which the
namespace controller takes away when the namespace is empty.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from gryvia_devcluster.api.builtins import CRDS, NAMESPACES, PODS
from gryvia_devcluster.clock import parse, stamp
from gryvia_devcluster.types import Json, ResourceType

Propagation = Literal["Background", "Foreground", "Orphan"]
CRD_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_BY_POLICY = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def mark(rt: ResourceType, live: Json, propagation: Propagation | None, grace: int | None, now: datetime) -> Json:
    """The object as it stands after the request: finalizers of the policy, deletionTimestamp, grace. A copy."""
    meta = dict(live["metadata"])
    obj = {**live, "metadata": meta}
    if propagation is not None:
        kept = [f for f in meta.get("finalizers") or [] if f not in _BY_POLICY.values()]
        wanted = _BY_POLICY.get(propagation)
        finalizers = [*kept, wanted] if wanted else kept
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
    finalizers = meta.get("finalizers") or []
    if rt.group_resource == CRDS and not meta.get("deletionTimestamp") and CRD_CLEANUP not in finalizers:
        meta["finalizers"] = [*finalizers, CRD_CLEANUP]
    seconds = _grace(rt, live, grace)
    if not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = stamp(now + timedelta(seconds=seconds))
        meta["deletionGracePeriodSeconds"] = seconds
        if "generation" in meta:
            meta["generation"] += 1
    elif seconds < meta.get("deletionGracePeriodSeconds", 0):
        shortened = parse(meta["deletionTimestamp"]) - timedelta(seconds=meta["deletionGracePeriodSeconds"] - seconds)
        meta["deletionTimestamp"] = stamp(shortened)
        meta["deletionGracePeriodSeconds"] = seconds
    if rt.group_resource == NAMESPACES:
        obj["status"] = {**(live.get("status") or {}), "phase": "Terminating"}
    return obj


def _grace(rt: ResourceType, live: Json, grace: int | None) -> int:
    if rt.group_resource != PODS:
        return 0
    if not live["spec"].get("nodeName") or (live.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    period = grace if grace is not None else live["spec"].get("terminationGracePeriodSeconds", 30)
    return max(int(period), 0)


def is_free(rt: ResourceType, obj: Json) -> bool:
    """True when nothing holds a marked object any longer."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers"):
        return False
    if rt.group_resource == NAMESPACES and (obj.get("spec") or {}).get("finalizers"):
        return False
    return rt.group_resource != PODS or not meta.get("deletionGracePeriodSeconds")
