"""The ReplicaSets of a Deployment as its revisions: which is the new one, which are old, how they are numbered."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from gryvia_devcluster.controllers.podstate import owner_reference
from gryvia_devcluster.controllers.template import template_hash
from gryvia_devcluster.types import Json

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
_NOT_COPIED = ("kubectl.kubernetes.io/last-applied-configuration", REVISION, DESIRED)


def revision_of(obj: Json) -> int:
    return int((obj["metadata"].get("annotations") or {}).get(REVISION, "0"))


def replicas_of(rs: Json) -> int:
    return int(rs["spec"].get("replicas", 1))


def hash_of(deployment: Json) -> str:
    return template_hash(deployment["spec"]["template"], deployment.get("status", {}).get("collisionCount", 0))


def split(deployment: Json, sets: Sequence[Json]) -> tuple[Json | None, list[Json]]:
    """The ReplicaSet of the present template, and the others from oldest to newest."""
    wanted = hash_of(deployment)
    new = next((rs for rs in sets if (rs["metadata"].get("labels") or {}).get(HASH) == wanted), None)
    old = [rs for rs in sets if rs is not new]
    return new, sorted(old, key=lambda rs: (revision_of(rs), rs["metadata"]["creationTimestamp"]))


def new_replicaset(deployment: Json, replicas: int, revision: int) -> Json:
    meta, template = deployment["metadata"], copy.deepcopy(deployment["spec"]["template"])
    label = {HASH: hash_of(deployment)}
    template.setdefault("metadata", {})["labels"] = {**(template["metadata"].get("labels") or {}), **label}
    selector = copy.deepcopy(deployment["spec"]["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **label}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    if deployment["spec"].get("minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    annotations = {k: v for k, v in (meta.get("annotations") or {}).items() if k not in _NOT_COPIED}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{label[HASH]}",
            "namespace": meta["namespace"],
            "labels": template["metadata"]["labels"],
            "annotations": {
                **annotations,
                REVISION: str(revision),
                DESIRED: str(deployment["spec"].get("replicas", 1)),
            },
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": spec,
    }
