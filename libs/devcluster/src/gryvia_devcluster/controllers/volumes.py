"""Claims are bound at once, each to a volume of its own that the node keeps as a folder.

There is no provisioner to wait for and no WaitForFirstConsumer: one machine has one place. The volume's name is derived
from the claim's uid, so a claim made again under the same name never sees the old data. A claim in use by a pod is
protected by the usual finalizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from gryvia_devcluster.controllers.actions import Action, Create, Emit, Merge, Remove
from gryvia_devcluster.controllers.cache import Cache, Ref
from gryvia_devcluster.controllers.podstate import is_deleting, is_finished
from gryvia_devcluster.controllers.shell import Controller
from gryvia_devcluster.types import Json

PROTECTION = "kubernetes.io/pvc-protection"
PROVISIONER = "devcluster.gryvia.dev/folder"


def volume_controllers() -> list[Controller]:
    return [
        Controller("persistentvolume-controller", "persistentvolumeclaims", _gather_claim, sync_claim, _wake_claims),
        Controller("persistentvolume-reclaimer", "persistentvolumes", _gather_volume, sync_volume, _wake_volumes),
    ]


def _gather_claim(cache: Cache, claim: Json) -> Sequence[Json]:
    """The volume the claim names, if any; for a claim under deletion the pods of its namespace as well."""
    volume = cache.get("persistentvolumes", "", claim["spec"].get("volumeName") or volume_name(claim))
    pods = cache.listing("pods", claim["metadata"]["namespace"]) if is_deleting(claim) else []
    return [*([volume] if volume is not None else []), *pods]


def _wake_claims(cache: Cache, ref: Ref, obj: Json) -> Iterable[Ref]:
    if ref.resource == "pods" and (cache.at(ref) is None or is_finished(obj)):
        yield from (Ref("persistentvolumeclaims", ref.namespace, name) for name in claims_of(obj))


def _gather_volume(cache: Cache, volume: Json) -> Sequence[Json]:
    reference = volume["spec"].get("claimRef")
    if reference is None:
        return []
    claim = cache.get("persistentvolumeclaims", reference["namespace"], reference["name"])
    return [claim] if claim is not None and claim["metadata"]["uid"] == reference.get("uid") else []


def _wake_volumes(cache: Cache, ref: Ref, obj: Json) -> Iterable[Ref]:
    if ref.resource == "persistentvolumeclaims" and obj["spec"].get("volumeName"):
        yield Ref("persistentvolumes", "", obj["spec"]["volumeName"])


def volume_name(claim: Json) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def claims_of(pod: Json) -> list[str]:
    volumes = pod["spec"].get("volumes") or ()
    return [v["persistentVolumeClaim"]["claimName"] for v in volumes if v.get("persistentVolumeClaim")]


def sync_claim(claim: Json, related: Sequence[Json], now: datetime) -> list[Action]:
    meta = claim["metadata"]
    if is_deleting(claim):
        pods = [obj for obj in related if obj["kind"] == "Pod"]
        in_use = any(meta["name"] in claims_of(pod) and not is_finished(pod) for pod in pods)
        finalizers = meta.get("finalizers", [])
        if in_use or PROTECTION not in finalizers:
            return []
        rest = [name for name in finalizers if name != PROTECTION]
        return [Merge(claim, {"metadata": {"finalizers": rest or None}})]
    if claim.get("status", {}).get("phase") == "Bound":
        return []
    volume = next((obj for obj in related if obj["kind"] == "PersistentVolume"), None)
    if volume is None and claim["spec"].get("volumeName"):
        return []
    made: list[Action] = [] if volume else [Create(_volume_for(claim))]
    return [*made, *_bind(claim, volume or _volume_for(claim))]


def _bind(claim: Json, volume: Json) -> list[Action]:
    meta, spec = claim["metadata"], claim["spec"]
    name = volume["metadata"]["name"]
    annotations = {"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/storage-provisioner": PROVISIONER}
    finalizers = [*(f for f in meta.get("finalizers", ()) if f != PROTECTION), PROTECTION]
    metadata = {"annotations": annotations, "finalizers": finalizers}
    status = {"phase": "Bound", "accessModes": spec.get("accessModes"), "capacity": volume["spec"]["capacity"]}
    return [
        Merge(claim, {"metadata": metadata, "spec": {"volumeName": name}}),
        Merge(claim, {"status": status}, "status"),
        Emit(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}"),
    ]


def _volume_for(claim: Json) -> Json:
    meta, spec = claim["metadata"], claim["spec"]
    name = volume_name(claim)
    storage = spec.get("resources", {}).get("requests", {}).get("storage", "1Gi")
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    reference |= {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "capacity": {"storage": storage},
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "claimRef": reference,
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec.get("storageClassName") or "",
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            "hostPath": {"path": f"/devcluster/volumes/{name}"},
        },
    }


def sync_volume(volume: Json, claims: Sequence[Json], now: datetime) -> list[Action]:
    """A volume follows its claim: Bound while it lives, then removed or Released as its reclaim policy says."""
    if is_deleting(volume) or not volume["spec"].get("claimRef"):
        return []
    phase = volume.get("status", {}).get("phase")
    if claims:
        return [] if phase == "Bound" else [Merge(volume, {"status": {"phase": "Bound"}}, "status")]
    if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
        return [Remove(volume)]
    return [] if phase == "Released" else [Merge(volume, {"status": {"phase": "Released"}}, "status")]
