"""DELETE, and the last step of every removal: the write that takes an object's last finalizer.

A CRD takes its objects with it: it is marked, its objects are deleted, and the last of them to go lets the CRD go.
"""

from __future__ import annotations

from gryvia_devcluster.api import deletion, refusals
from gryvia_devcluster.api.builtins import CRDS, NAMESPACES
from gryvia_devcluster.api.deletion import CRD_CLEANUP, Propagation
from gryvia_devcluster.api.state import State
from gryvia_devcluster.store import Key
from gryvia_devcluster.types import Json, ResourceType

_KEPT_NAMESPACES = ("default", "kube-system", "kube-public")


def delete(
    state: State,
    rt: ResourceType,
    namespace: str | None,
    name: str,
    *,
    propagation: Propagation | None,
    uid: str | None,
    resource_version: str | None,
    grace_seconds: int | None,
    dry_run: bool,
) -> Json:
    """The object as it is after the request: marked, or in its last state. Raises ApiError."""
    live = state.entry(rt, namespace, name).obj
    _check_preconditions(rt, name, live, uid, resource_version)
    if rt.group_resource == NAMESPACES and name in _KEPT_NAMESPACES:
        raise refusals.forbidden(rt, name, "this namespace may not be deleted")
    marked = deletion.mark(rt, live, propagation, grace_seconds, state.clock.now())
    state.admission.review("DELETE", rt, marked, live)
    if dry_run:
        return marked
    if deletion.is_free(rt, marked):
        return remove(state, rt, marked)
    if marked != live:
        state.put(rt, marked)
    return _clear_custom(state, marked) if rt.group_resource == CRDS else marked


def _check_preconditions(
    rt: ResourceType, name: str, live: Json, uid: str | None, resource_version: str | None
) -> None:
    meta = live["metadata"]
    if uid and uid != meta["uid"]:
        why = "The object might have been deleted and then recreated"
        raise refusals.wrong_precondition(rt, name, "UID", uid, meta["uid"], why)
    if resource_version and resource_version != meta["resourceVersion"]:
        why = "The object might have been modified"
        raise refusals.wrong_precondition(rt, name, "ResourceVersion", resource_version, meta["resourceVersion"], why)


def remove(state: State, rt: ResourceType, last: Json) -> Json:
    """Takes the object out of the store; returns its last state with the version of the removal."""
    meta = last["metadata"]
    gone = state.store.remove(rt.group_resource, Key(meta.get("namespace") or "", meta["name"]), last)
    if rt.group_resource == NAMESPACES:
        _sweep(state, meta["name"])
    elif rt.group_resource == CRDS:
        state.catalog.replace_custom(last["spec"]["group"], last["spec"]["names"]["plural"], ())
    elif rt.schema is not None and not state.store.count(rt.group_resource):
        _finish_crd(state, rt.group_resource)
    return gone.obj


def _sweep(state: State, namespace: str) -> None:
    """Removes what a namespace still holds when it goes: what its controller does not count, such as events and leases."""
    for rt in state.catalog.storage_types():
        if rt.namespaced:
            for entry in state.store.entries(rt.group_resource, namespace):
                state.store.remove(rt.group_resource, entry.key, entry.obj)


def _clear_custom(state: State, crd: Json) -> Json:
    spec = crd["spec"]
    rt = state.catalog.stored(spec["group"], spec["names"]["plural"])
    if not state.store.count(rt.group_resource):
        return _finish_crd(state, rt.group_resource) or crd
    for entry in state.store.entries(rt.group_resource):
        marked = deletion.mark(rt, entry.obj, None, None, state.clock.now())
        if deletion.is_free(rt, marked):
            remove(state, rt, marked)
        elif marked != entry.obj:
            state.put(rt, marked)
    return crd


def _finish_crd(state: State, crd_name: str) -> Json | None:
    entry = state.store.get(CRDS, Key("", crd_name))
    if entry is None or not entry.obj["metadata"].get("deletionTimestamp"):
        return None
    rt = state.catalog.stored("apiextensions.k8s.io", "customresourcedefinitions")
    meta = dict(entry.obj["metadata"])
    meta["finalizers"] = [name for name in meta.get("finalizers") or [] if name != CRD_CLEANUP]
    crd = {**entry.obj, "metadata": meta}
    if deletion.is_free(rt, crd):
        return remove(state, rt, crd)
    state.put(rt, crd)
    return crd
