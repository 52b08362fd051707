"""The Deployment controller, wired."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gryvia_devcluster.controllers.cache import Cache, Ref, controller_ref
from gryvia_devcluster.controllers.deployment.sync import recreates, sync_deployment
from gryvia_devcluster.controllers.shell import Controller
from gryvia_devcluster.types import Json


def deployment_controllers() -> list[Controller]:
    return [
        Controller(
            name="deployment-controller",
            resource="deployments.apps",
            gather=_gather,
            sync=sync_deployment,
            wake=_wake,
        )
    ]


def _gather(cache: Cache, deployment: Json) -> Sequence[Json]:
    """Its ReplicaSets; their pods too where an update has to wait for the last old one to end."""
    sets = cache.controlled(deployment, "replicasets.apps")
    if not recreates(deployment):
        return sets
    return [*sets, *(pod for rs in sets for pod in cache.controlled(rs, "pods"))]


def _wake(cache: Cache, ref: Ref, obj: Json) -> Iterable[Ref]:
    owner = controller_ref(obj)
    if ref.resource == "pods" and owner is not None and owner["kind"] == "ReplicaSet" and cache.at(ref) is None:
        rs = cache.by_uid(owner["uid"])
        owner = controller_ref(rs) if rs else None
    elif ref.resource != "replicasets.apps":
        return
    if owner is not None:
        yield Ref("deployments.apps", ref.namespace, owner["name"])
