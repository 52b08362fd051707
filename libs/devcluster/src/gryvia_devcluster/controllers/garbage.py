"""Garbage collection along owner references, and the emptying of namespaces.

The rules are those of k8s.io/kubernetes' garbage collector. A dependent goes when none of its owners is left; it only
loses the dead references when a live owner remains. An owner under foreground deletion stays until its blocking
dependents are gone; under orphan deletion its dependents lose the reference first. An owner in another namespace counts
as absent, which deletes the dependent, as the real one does. Each object's pass decides about that object alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from gryvia_devcluster.controllers.actions import Action, Merge, Remove
from gryvia_devcluster.controllers.cache import Cache, Ref, owner_uids
from gryvia_devcluster.controllers.podstate import is_deleting
from gryvia_devcluster.controllers.shell import Controller
from gryvia_devcluster.types import Json

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


def garbage_controllers() -> list[Controller]:
    return [
        Controller("garbage-collector", "*", gather_relatives, sync_garbage, wake_relatives, _ownership_changed),
        Controller("namespace-controller", "namespaces", _contents, sync_namespace, _wake_namespace),
    ]


def gather_relatives(cache: Cache, obj: Json) -> Sequence[Json]:
    """The owners that exist, then the dependents. Only an owner that is being deleted needs its dependents."""
    references = obj["metadata"].get("ownerReferences", ())
    owners = [owner for reference in references if (owner := cache.owner(obj, reference)) is not None]
    dependents = [dependent for _, dependent in cache.dependents(obj["metadata"]["uid"])]
    return [*owners, *dependents]


def wake_relatives(cache: Cache, ref: Ref, obj: Json) -> Iterable[Ref]:
    gone = cache.at(ref) is None
    meta = obj["metadata"]
    if gone or is_deleting(obj):
        yield from (dependent for dependent, _ in cache.dependents(meta["uid"]))
        for owner in owner_uids(obj):
            found = cache.ref_by_uid(owner)
            if found is not None:
                yield found


def _ownership_changed(old: Json | None, new: Json | None) -> bool:
    if old is None or new is None:
        return True
    fields = ("uid", "ownerReferences", "finalizers", "deletionTimestamp")
    return any(old["metadata"].get(field) != new["metadata"].get(field) for field in fields)


def sync_garbage(obj: Json, relatives: Sequence[Json], now: datetime) -> list[Action]:
    uid = obj["metadata"]["uid"]
    dependents = [r for r in relatives if uid in owner_uids(r)]
    if is_deleting(obj):
        return _release_owner(obj, dependents)
    owners = {r["metadata"]["uid"]: r for r in relatives}
    references = obj["metadata"].get("ownerReferences", [])
    solid = [ref for ref in references if ref["uid"] in owners and not _waits_for_dependents(owners[ref["uid"]])]
    if not references or len(solid) == len(references):
        return []
    if solid:
        return [Merge(obj, {"metadata": {"ownerReferences": solid}})]
    waiting = any(ref["uid"] in owners for ref in references)
    return [Remove(obj, "Foreground" if waiting and dependents else "Background")]


def _waits_for_dependents(owner: Json) -> bool:
    return is_deleting(owner) and FOREGROUND in owner["metadata"].get("finalizers", ())


def _release_owner(obj: Json, dependents: Sequence[Json]) -> list[Action]:
    uid, finalizers = obj["metadata"]["uid"], obj["metadata"].get("finalizers", [])
    if ORPHAN in finalizers:
        orphaned: list[Action] = [Merge(d, {"metadata": {"ownerReferences": _without(d, uid)}}) for d in dependents]
        return [*orphaned, _drop_finalizer(obj, ORPHAN)]
    if FOREGROUND in finalizers and not any(_blocks(d, uid) for d in dependents):
        return [_drop_finalizer(obj, FOREGROUND)]
    return []


def _blocks(dependent: Json, uid: str) -> bool:
    references = dependent["metadata"].get("ownerReferences", ())
    return any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in references)


def _without(dependent: Json, uid: str) -> list[Json] | None:
    return [ref for ref in dependent["metadata"]["ownerReferences"] if ref["uid"] != uid] or None


def _drop_finalizer(obj: Json, name: str) -> Merge:
    rest = [finalizer for finalizer in obj["metadata"].get("finalizers", ()) if finalizer != name]
    return Merge(obj, {"metadata": {"finalizers": rest or None}})


def _contents(cache: Cache, namespace: Json) -> Sequence[Json]:
    if not is_deleting(namespace):
        return []
    return [obj for _, obj in cache.in_namespace(namespace["metadata"]["name"])]


def _wake_namespace(cache: Cache, ref: Ref, obj: Json) -> Iterable[Ref]:
    namespace = cache.get("namespaces", "", ref.namespace) if ref.namespace else None
    if namespace is not None and is_deleting(namespace):
        yield Ref("namespaces", "", ref.namespace)


def sync_namespace(namespace: Json, contents: Sequence[Json], now: datetime) -> list[Action]:
    """A namespace under deletion is emptied, and goes when the last object (with its finalizers) has gone."""
    if not is_deleting(namespace):
        return []
    doomed: list[Action] = [Remove(obj) for obj in contents if not is_deleting(obj)]
    if contents or not namespace.get("spec", {}).get("finalizers"):
        return doomed
    return [Merge(namespace, {"spec": {"finalizers": None}})]
