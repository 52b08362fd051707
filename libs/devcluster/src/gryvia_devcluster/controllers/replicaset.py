"""The ReplicaSet controller: as many pods as asked for, and how many of them are ready and available."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from gryvia_devcluster.controllers.actions import Action, Again, Create, Remove, Replace
from gryvia_devcluster.controllers.cache import Cache, Ref, controller_ref
from gryvia_devcluster.controllers.podstate import (
    available_at,
    is_active,
    is_deleting,
    is_ready,
    phase,
    pod_from_template,
)
from gryvia_devcluster.controllers.shell import Controller
from gryvia_devcluster.types import Json


def replicaset_controllers() -> list[Controller]:
    return [
        Controller(
            name="replicaset-controller",
            resource="replicasets.apps",
            gather=lambda cache, rs: cache.controlled(rs, "pods"),
            sync=sync_replicaset,
            wake=_wake,
        )
    ]


def _wake(cache: Cache, ref: Ref, obj: Json) -> Iterable[Ref]:
    if ref.resource == "pods" and (owner := controller_ref(obj)) is not None and owner["kind"] == "ReplicaSet":
        yield Ref("replicasets.apps", ref.namespace, owner["name"])


def sync_replicaset(rs: Json, pods: Sequence[Json], now: datetime) -> list[Action]:
    active = [pod for pod in pods if is_active(pod)]
    actions: list[Action] = []
    missing = 0
    if not is_deleting(rs):
        missing = int(rs["spec"].get("replicas", 1)) - len(active)
        actions += [Create(_pod(rs), about=rs) for _ in range(missing)]
        actions += [Remove(pod, about=rs) for pod in _first_to_go(active)[: max(-missing, 0)]]
    status, next_look = _status(rs, active, now)
    # Pods that are made now bring the next pass at once, and that one counts them: no write for the state in between.
    if status != rs.get("status", {}) and missing <= 0:
        actions.insert(0, Replace({**rs, "status": status}, "status"))
    return [*actions, *([Again(next_look)] if next_look else [])]


def _pod(rs: Json) -> Json:
    pod = pod_from_template(rs, rs["spec"]["template"])
    pod["metadata"]["generateName"] = f"{rs['metadata']['name']}-"
    return pod


def _first_to_go(pods: Sequence[Json]) -> list[Json]:
    """Unassigned before assigned, pending before running, unready before ready, young before old."""
    newest_first = sorted(pods, key=lambda p: (p["metadata"]["creationTimestamp"], p["metadata"]["name"]), reverse=True)
    return sorted(newest_first, key=lambda p: (bool(p["spec"].get("nodeName")), phase(p) == "Running", is_ready(p)))


def _status(rs: Json, active: Sequence[Json], now: datetime) -> tuple[Json, datetime | None]:
    seconds = int(rs["spec"].get("minReadySeconds", 0))
    ready_since = [at for pod in active if (at := available_at(pod, seconds)) is not None]
    template_labels = rs["spec"]["template"].get("metadata", {}).get("labels") or {}
    labelled = [p for p in active if template_labels.items() <= (p["metadata"].get("labels") or {}).items()]
    status = {
        "replicas": len(active),
        "fullyLabeledReplicas": len(labelled),
        "readyReplicas": len(ready_since),
        "availableReplicas": sum(at <= now for at in ready_since),
        "observedGeneration": rs["metadata"].get("generation"),
        "conditions": rs.get("status", {}).get("conditions"),
    }
    kept = {key: value for key, value in status.items() if key == "replicas" or value}
    return kept, min((at for at in ready_since if at > now), default=None)
