"""The StatefulSet controller, wired."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gryvia_devcluster.controllers.cache import Cache, Ref, controller_ref
from gryvia_devcluster.controllers.shell import Controller
from gryvia_devcluster.controllers.statefulset.identity import claim_names, ordinal_of
from gryvia_devcluster.controllers.statefulset.sync import sync_statefulset
from gryvia_devcluster.types import Json


def statefulset_controllers() -> list[Controller]:
    return [Controller("statefulset-controller", "statefulsets.apps", _gather, sync_statefulset, _wake)]


def _gather(cache: Cache, sts: Json) -> Sequence[Json]:
    """Its pods and revisions, and the claims that belong to its present and leaving ordinals."""
    pods = cache.controlled(sts, "pods")
    start, replicas = sts["spec"].get("ordinals", {}).get("start", 0), sts["spec"].get("replicas", 1)
    ordinals = {*range(start, start + replicas), *(o for pod in pods if (o := ordinal_of(sts, pod)) is not None)}
    names = [name for ordinal in sorted(ordinals) for name in claim_names(sts, ordinal)]
    namespace = sts["metadata"]["namespace"]
    claims = [cache.get("persistentvolumeclaims", namespace, name) for name in names]
    revisions = cache.controlled(sts, "controllerrevisions.apps")
    return [*pods, *revisions, *(claim for claim in claims if claim is not None)]


def _wake(cache: Cache, ref: Ref, obj: Json) -> Iterable[Ref]:
    if ref.resource == "pods" and (owner := controller_ref(obj)) is not None and owner["kind"] == "StatefulSet":
        yield Ref("statefulsets.apps", ref.namespace, owner["name"])
