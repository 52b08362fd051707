"""The Deployment controller: revisions, rolling and recreating updates, progress.

One pass looks at the ReplicaSets, moves their sizes a step and writes the status; the next step follows when a
ReplicaSet's own status changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gryvia_devcluster.controllers.actions import Action, Again, Create, Emit, Merge, Remove, Replace
from gryvia_devcluster.controllers.cache import controller_uid
from gryvia_devcluster.controllers.deployment.progress import deployment_status
from gryvia_devcluster.controllers.deployment.revisions import (
    DESIRED,
    REVISION,
    new_replicaset,
    replicas_of,
    revision_of,
    split,
)
from gryvia_devcluster.controllers.deployment.rollout import (
    Bounds,
    SetSize,
    bounds_of,
    new_size,
    old_sizes,
    proportional_sizes,
)
from gryvia_devcluster.controllers.podstate import is_deleting, is_finished
from gryvia_devcluster.types import Json

_NOTHING = SetSize(0, 0, 0)


def recreates(deployment: Json) -> bool:
    return bool(deployment["spec"].get("strategy", {}).get("type") == "Recreate")


def sync_deployment(deployment: Json, related: Sequence[Json], now: datetime) -> list[Action]:
    if is_deleting(deployment):
        return []
    new, old = split(deployment, [obj for obj in related if obj["kind"] == "ReplicaSet"])
    old_uids = {rs["metadata"]["uid"] for rs in old}
    remaining = [pod for pod in related if pod["kind"] == "Pod" and controller_uid(pod) in old_uids]
    bounds = bounds_of(deployment)
    actions: list[Action] = []
    sizes = _sizes(deployment, bounds, new, old, all(map(is_finished, remaining)))
    if sizes is not None:
        wanted, olds = sizes
        if new is None:
            actions += _create(deployment, wanted, old)
        else:
            actions += [*_renumber(deployment, new, old), *_scale(deployment, new, wanted)]
        for rs, size in zip(old, olds, strict=True):
            actions += _scale(deployment, rs, size)
    if not deployment["spec"].get("paused"):
        actions += _forget(deployment, bounds, new, old)
    status, next_look = deployment_status(deployment, new, old, now)
    if status != deployment.get("status", {}):
        # First, and on the version seen: a refusal means that this whole pass was decided on old news.
        actions.insert(0, Replace({**deployment, "status": status}, "status"))
    return [*actions, *([Again(next_look)] if next_look else [])]


def _sizes(
    deployment: Json, bounds: Bounds, new: Json | None, old: Sequence[Json], old_ended: bool
) -> tuple[int, list[int]] | None:
    """The size of the new ReplicaSet and of the old ones; None where no new one should be made."""
    present, others = (_size(new) if new else _NOTHING), [_size(rs) for rs in old]
    if deployment["spec"].get("paused"):
        if new is None and not old:
            return None
        sizes = proportional_sizes(bounds, present, others)
        return sizes if new is not None else (0, sizes[1])
    if recreates(deployment):
        gone = old_ended and all(size.existing == 0 and size.desired == 0 for size in others)
        return (bounds.replicas if gone else present.desired), [0] * len(others)
    return new_size(bounds, present, others), old_sizes(bounds, present, others)


def _size(rs: Json) -> SetSize:
    status = rs.get("status", {})
    return SetSize(replicas_of(rs), status.get("replicas", 0), status.get("availableReplicas", 0))


def _create(deployment: Json, replicas: int, old: Sequence[Json]) -> list[Action]:
    if deployment["spec"].get("paused"):
        return []
    revision = max((revision_of(rs) for rs in old), default=0) + 1
    made = new_replicaset(deployment, replicas, revision)
    name = made["metadata"]["name"]
    message = f"Scaled up replica set {name} from 0 to {replicas}"
    scaled: list[Action] = [Emit(deployment, "ScalingReplicaSet", message)] if replicas else []
    return [Create(made), *_annotate(deployment, revision), *scaled]


def _renumber(deployment: Json, new: Json, old: Sequence[Json]) -> list[Action]:
    """A template that comes back (a rollback) becomes the newest revision again."""
    highest = max((revision_of(rs) for rs in old), default=0)
    if revision_of(new) > highest:
        return _annotate(deployment, revision_of(new))
    body = {"metadata": {"annotations": {REVISION: str(highest + 1)}}}
    return [Merge(new, body), *_annotate(deployment, highest + 1)]


def _annotate(deployment: Json, revision: int) -> list[Action]:
    if revision_of(deployment) == revision:
        return []
    # Through the status, as the real controller: it is no change that a generation counts.
    return [Merge(deployment, {"metadata": {"annotations": {REVISION: str(revision)}}}, "status")]


def _scale(deployment: Json, rs: Json, size: int) -> list[Action]:
    current = replicas_of(rs)
    if current == size:
        return []
    name = rs["metadata"]["name"]
    direction = "up" if size > current else "down"
    desired = {DESIRED: str(deployment["spec"].get("replicas", 1))}
    body = {"spec": {"replicas": size}, "metadata": {"annotations": desired}}
    message = f"Scaled {direction} replica set {name} from {current} to {size}"
    return [Merge(rs, body), Emit(deployment, "ScalingReplicaSet", message)]


def _forget(deployment: Json, bounds: Bounds, new: Json | None, old: Sequence[Json]) -> list[Action]:
    """Once complete, old revisions beyond the history limit go, oldest first."""
    if new is None or new.get("status", {}).get("availableReplicas", 0) < bounds.replicas:
        return []
    empty = [rs for rs in old if replicas_of(rs) == 0 and not rs.get("status", {}).get("replicas")]
    surplus = len(empty) - int(deployment["spec"].get("revisionHistoryLimit", 10))
    return [Remove(rs) for rs in empty[: max(surplus, 0)] if not is_deleting(rs)]
