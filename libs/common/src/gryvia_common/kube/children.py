"""How a child object gets its name, its owner and its labels: the same for every service.

A child carries a controller owner reference (garbage collection) and the annotation `gryvia.io/owner` =
`<plural>/<namespace>/<name>/<uid>`. The annotation is repeated on pod templates, so that the pods of a Job find their way
to the Gryvia object two levels up; a label could not, its value ends at 63 characters. The bridge reads it for the partition.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from gryvia_common.kube.objects import Json, annotations_of, controller_of, key_of, metadata
from gryvia_common.kube.resources import GROUP, Resource

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "gryvia"
OWNER = f"{GROUP}/owner"
NAME_LIMIT = 63


@dataclass(frozen=True, slots=True)
class Owner:
    """The Gryvia object a child belongs to, at whatever depth."""

    plural: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.plural}/{self.namespace}/{self.name}/{self.uid}"


def child_name(*parts: str, limit: int = NAME_LIMIT) -> str:
    """The parts joined with `-`; above `limit` characters the end is replaced by a hash of the whole, so it stays
    deterministic. A lower limit leaves room for what Kubernetes appends to the name (an index, a revision)."""
    name = "-".join(part for part in parts if part)
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: limit - 11].rstrip('-.')}-{digest}"


def owned_metadata(owner: Json, resource: Resource, name: str, labels: dict[str, str] | None = None) -> Json:
    """metadata of a child of `owner` (an object of type `resource`): owner reference, owner annotation, labels."""
    meta = metadata(owner)
    owned: Json = {
        "name": name,
        "labels": {MANAGED_BY: MANAGER, **(labels or {})},
        "annotations": {OWNER: str(_owner(owner, resource))},
        "ownerReferences": [
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "name": meta["name"],
                "uid": meta["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if meta.get("namespace"):
        owned["namespace"] = meta["namespace"]
    return owned


def template_metadata(owner: Json, resource: Resource, labels: dict[str, str] | None = None) -> Json:
    """metadata of a pod template of `owner`: labels and the owner annotation, no owner reference (the Job is the owner)."""
    return {
        "labels": {MANAGED_BY: MANAGER, **(labels or {})},
        "annotations": {OWNER: str(_owner(owner, resource))},
    }


def partial_manifest(obj: Json, resource: Resource, spec: Json) -> Json:
    """For server-side apply of these fields of an object that is there, alone: whatever else it holds stays untouched."""
    key = key_of(obj)
    meta = {"name": key.name, "namespace": key.namespace} if key.namespace else {"name": key.name}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}


def owner_of(obj: Json) -> Owner | None:
    """The Gryvia object that `obj` belongs to: by annotation, else by a controller reference of our group."""
    text = annotations_of(obj).get(OWNER)
    if text and text.count("/") == 3:
        return Owner(*text.split("/"))
    ref = controller_of(obj)
    if ref and str(ref.get("apiVersion", "")).startswith(f"{GROUP}/"):
        return Owner(f"{ref['kind'].lower()}s", metadata(obj).get("namespace") or "", ref["name"], ref["uid"])
    return None


def is_controlled_by(obj: Json, owner: Json) -> bool:
    """Whether `owner` is the controller of `obj`, by uid: a same-named object with another owner is a collision."""
    ref = controller_of(obj)
    return ref is not None and ref.get("uid") == metadata(owner).get("uid")


def _owner(owner: Json, resource: Resource) -> Owner:
    meta = metadata(owner)
    return Owner(resource.plural, meta.get("namespace") or "", meta["name"], meta["uid"])
