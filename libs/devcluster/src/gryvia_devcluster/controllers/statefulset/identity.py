"""What is stable about a StatefulSet's pods: name, ordinal, host name, claims, revision."""

from __future__ import annotations

import copy

from gryvia_devcluster.controllers.podstate import owner_reference, pod_from_template
from gryvia_devcluster.controllers.template import template_hash
from gryvia_devcluster.types import Json

REVISION_LABEL = "controller-revision-hash"


def pod_name(sts: Json, ordinal: int) -> str:
    return f"{sts['metadata']['name']}-{ordinal}"


def ordinal_of(sts: Json, pod: Json) -> int | None:
    parent, _, number = str(pod["metadata"]["name"]).rpartition("-")
    return int(number) if parent == sts["metadata"]["name"] and number.isdecimal() else None


def claim_names(sts: Json, ordinal: int) -> list[str]:
    templates = sts["spec"].get("volumeClaimTemplates") or ()
    return [f"{template['metadata']['name']}-{pod_name(sts, ordinal)}" for template in templates]


def update_revision(sts: Json) -> str:
    collisions = sts.get("status", {}).get("collisionCount", 0)
    return f"{sts['metadata']['name']}-{template_hash(sts['spec']['template'], collisions)}"


def revision_of(pod: Json) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def new_revision(sts: Json, number: int) -> Json:
    name = update_revision(sts)
    labels = {**(sts["spec"]["template"].get("metadata", {}).get("labels") or {}), REVISION_LABEL: name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": sts["metadata"]["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(sts)],
        },
        "data": {"spec": {"template": sts["spec"]["template"]}},
        "revision": number,
    }


def new_pod(sts: Json, ordinal: int, revision: str, template: Json) -> Json:
    pod = pod_from_template(sts, template)
    name = pod_name(sts, ordinal)
    pod["metadata"]["name"] = name
    pod["metadata"]["labels"] |= {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
        REVISION_LABEL: revision,
    }
    claimed = {
        template["metadata"]["name"]: claim
        for template, claim in zip(
            sts["spec"].get("volumeClaimTemplates") or (), claim_names(sts, ordinal), strict=True
        )
    }
    others = [v for v in pod["spec"].get("volumes") or () if v["name"] not in claimed]
    volumes = [*others, *({"name": n, "persistentVolumeClaim": {"claimName": c}} for n, c in claimed.items())]
    pod["spec"] |= {"hostname": name, "subdomain": sts["spec"].get("serviceName", "")}
    if volumes:
        pod["spec"]["volumes"] = volumes
    if not pod["spec"]["subdomain"]:
        del pod["spec"]["subdomain"]
    return pod


def new_claims(sts: Json, ordinal: int, present: set[str]) -> list[Json]:
    """The claims of an ordinal that do not exist yet. They outlive the pod, and the set too unless it says otherwise."""
    claims = []
    policy = sts["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    labels = sts["spec"]["selector"].get("matchLabels") or {}
    for template, name in zip(sts["spec"].get("volumeClaimTemplates") or (), claim_names(sts, ordinal), strict=True):
        if name in present:
            continue
        meta = template["metadata"]
        metadata: Json = {
            "name": name,
            "namespace": sts["metadata"]["namespace"],
            "labels": {**(meta.get("labels") or {}), **labels},
            "annotations": dict(meta.get("annotations") or {}),
        }
        if policy.get("whenDeleted") == "Delete":
            metadata["ownerReferences"] = [{**owner_reference(sts), "controller": False, "blockOwnerDeletion": False}]
        spec = copy.deepcopy(template["spec"])
        claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return claims
