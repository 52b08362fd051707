"""The one way of a write, whoever makes it: decode, defaults, hooks, validation, generation, ownership, store.

Invariant: what is stored went through all steps, and a write that changes nothing stores nothing (the resourceVersion
stays, no watcher wakes). Everything is synchronous, so no other write can come between a check and what relies on it.
"""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.api import content, defaults, deletion, generation, metadata, refusals, scaling
from gryvia_devcluster.api.builtins import CRDS, NAMESPACES
from gryvia_devcluster.api.catalog import Served
from gryvia_devcluster.api.crds import established_status
from gryvia_devcluster.api.options import WriteOptions
from gryvia_devcluster.api.patching import patched
from gryvia_devcluster.api.removal import remove
from gryvia_devcluster.api.state import State, copy
from gryvia_devcluster.api.typed_apply import check_types
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch import apply_patch, track_update
from gryvia_devcluster.patch.claims import refused, undeclared
from gryvia_devcluster.store import Key
from gryvia_devcluster.types import Json, PatchType, ResourceType, Subresource

ANNOTATED_BY_STATUS = frozenset({"deployments.apps", "replicasets.apps"})
"""Where a write of the status may change annotations too: the revision of a rollout comes that way."""


def typed(rt: ResourceType, obj: Json) -> Json:
    """A private copy with the right apiVersion, kind and a metadata map. Raises ApiError BadRequest."""
    if not isinstance(obj, dict):
        raise ApiError("BadRequest", f"the body of the request must be a {rt.kind} object")
    new = copy(obj)
    if new.get("metadata") is None:
        new["metadata"] = {}
    if not isinstance(new["metadata"], dict):
        raise ApiError("BadRequest", f"{rt.kind}: metadata must be an object")
    version, kind = new.setdefault("apiVersion", rt.api_version), new.setdefault("kind", rt.kind)
    if version != rt.api_version:
        error = ApiError(
            "BadRequest",
            f"the API version in the data ({version}) does not match the expected API version ({rt.api_version})",
        )
        error.warnings += _of_another_version(rt, new)
        raise error
    if kind != rt.kind:
        raise refusals.wrong_kind(rt, new["metadata"].get("name") or "", kind)
    return new


def _of_another_version(rt: ResourceType, obj: Json) -> list[str]:
    """A version that a custom type does not have knows no fields."""
    known = ("apiVersion", "kind", "metadata")
    return [f'unknown field "{field}"' for field in obj if field not in known] if rt.schema is not None else []


def ownership(state: State, served: Served, subresource: str) -> dict[str, Any]:
    """The arguments that field ownership needs beyond the objects."""
    rt = served.rt
    return {
        "api_version": rt.api_version,
        "subresource": subresource,
        "schema": rt.schema,
        "group_kind": (rt.group, rt.kind),
        "now": state.now(),
    }


def create(state: State, served: Served, namespace: str | None, obj: Json, options: WriteOptions) -> Json:
    new = _prepare(state, served, namespace, typed(served.rt, obj), options)
    new["metadata"].pop("managedFields", None)
    # The first status is the server's own and nobody's.
    status = new.pop("status", None) if "status" in served.rt.subresources else None
    new = track_update(None, new, manager=options.manager, **ownership(state, served, ""))
    if status is not None:
        new["status"] = status
    return _insert(state, served, _admit(state, served, new), options)


def _prepare(state: State, served: Served, namespace: str | None, new: Json, options: WriteOptions) -> Json:
    """Makes `new` (in place) what its creator owns: what was sent, and the defaults."""
    rt = served.rt
    content.decode(served, new, options)
    metadata.prepare_new(rt, namespace, new, now=state.now(), generation=generation.is_kept(served))
    _check_namespace(state, rt, new)
    if "status" in rt.subresources:
        new.pop("status", None)
    content.default(served, new)
    return new


def _admit(state: State, served: Served, new: Json) -> Json:
    """Adds (in place) what a new object gets besides."""
    if not served.custom:
        defaults.default_new(served.rt, new, state.now())
    state.admission.review("CREATE", served.rt, new, None)
    return new


def _insert(state: State, served: Served, new: Json, options: WriteOptions) -> Json:
    rt, meta = served.rt, new["metadata"]
    content.validate(served, new, None)
    existing = state.store.get(rt.group_resource, Key(meta.get("namespace") or "", meta["name"]))
    if existing is not None:
        going = existing.obj["metadata"].get("deletionTimestamp")
        raise refusals.being_deleted(rt, meta["name"]) if going else refusals.already_exists(rt, meta["name"])
    if rt.group_resource == CRDS:
        if causes := state.catalog.name_clash(new):
            raise refusals.invalid(rt, meta["name"], causes)
        new["status"] = established_status(new, state.now())
    if served.warning:
        options.warnings.append(served.warning)
    options.warnings += metadata.warnings(rt, meta, None)
    if not options.dry_run:
        state.put(rt, new)
        state.admission.created(rt, new)
    return new


def update(
    state: State, served: Served, live: Json, obj: Json, subresource: Subresource, options: WriteOptions
) -> Json:
    rt, meta = served.rt, live["metadata"]
    new = copy(obj) if subresource == "scale" else typed(rt, obj)
    metadata.check_identity(rt, meta["name"], meta.get("namespace"), live, new, whole=True)
    if subresource == "scale":
        new = copy(scaling.scaled(rt, live, new))
    return _replace(state, served, live, new, subresource, options)


def patch(
    state: State,
    served: Served,
    live: Json,
    body: Any,
    patch_type: PatchType,
    subresource: Subresource,
    options: WriteOptions,
) -> Json:
    """The patches that are a function of the object: JSON, merge and strategic merge."""
    rt, meta = served.rt, live["metadata"]
    if subresource == "scale":
        new = scaling.scaled(rt, live, patched(scaling.scale_of(rt, live), body, patch_type, None))
    else:
        new = patched(live, body, patch_type, None if served.custom else rt)
        _check_type(rt, meta["name"], new)
        metadata.check_identity(rt, meta["name"], meta.get("namespace"), live, new)
    return _replace(state, served, live, copy(new), subresource, options)


def _check_type(rt: ResourceType, name: str, new: Json) -> None:
    """That a patch has left an object of its type. Raises ApiError."""
    meta = new.get("metadata") or {}
    if not isinstance(meta, dict):
        raise ApiError("BadRequest", "a patch may not change the shape of metadata")
    if not meta.get("name"):
        raise ApiError("BadRequest", _undeterminable(name))
    version, kind = new.get("apiVersion", ""), new.get("kind", "")
    if version != rt.api_version:
        cause = refusals.invalid_value("apiVersion", version, f"must be {rt.api_version}")
        error = refusals.invalid(rt, name, [cause])
        error.warnings += _of_another_version(rt, new)
        raise error
    if kind != rt.kind:
        raise refusals.wrong_kind(rt, name, kind)


def _undeterminable(name: str) -> str:
    return f"the name of the object ({name} based on URL) was undeterminable: name must be provided"


def _check_applied(rt: ResourceType, name: str, body: Any) -> None:
    """An applied configuration says itself what it is. Raises ApiError BadRequest."""
    said = body if isinstance(body, dict) else {}
    version, kind = said.get("apiVersion") or "", said.get("kind") or ""
    if kind != rt.kind or not version:
        group, slash, short = version.rpartition("/")
        raise ApiError("BadRequest", f"invalid object type: {group}{slash or '/'}{short}, Kind={kind}")
    named = (said.get("metadata") or {}).get("name")
    if not named:
        raise ApiError("BadRequest", _undeterminable(name))
    if named != name:
        raise ApiError("BadRequest", f"the name of the object ({named}) does not match the name on the URL ({name})")


def apply(
    state: State,
    served: Served,
    namespace: str | None,
    name: str,
    body: Any,
    subresource: Subresource,
    options: WriteOptions,
) -> Json:
    """Server-side apply: merge by field ownership into what is there, or create it."""
    rt = served.rt
    _check_applied(rt, name, body)
    applied = typed(rt, body)
    meta = applied["metadata"]
    if meta.get("managedFields"):
        raise ApiError("BadRequest", "metadata.managedFields must be nil")
    check_types(rt, applied)
    if unknown := content.drop_unknown(served, applied):
        raise refused(undeclared(unknown), applied)
    entry = state.store.get(rt.group_resource, Key(namespace or "", name))
    if subresource == "status":
        applied = {key: applied[key] for key in ("apiVersion", "kind", "metadata", "status") if key in applied}
    elif "status" in rt.subresources:
        applied.pop("status", None)
    arguments = ownership(state, served, subresource)
    if entry is None:
        if subresource or meta.get("uid"):
            raise refusals.not_found(rt, name)
        owned = apply_patch(None, applied, manager=options.manager, force=options.force, **arguments)
        new = _prepare(state, served, namespace, copy(owned), options)
        return _insert(state, served, _admit(state, served, new), options)
    live = entry.obj
    metadata.check_identity(rt, name, namespace, live, applied)
    merged = apply_patch(live, applied, manager=options.manager, force=options.force, **arguments)
    return _replace(state, served, live, copy(merged), subresource, options, owned=True)


def _replace(
    state: State,
    served: Served,
    live: Json,
    new: Json,
    subresource: Subresource,
    options: WriteOptions,
    *,
    owned: bool = False,
) -> Json:
    """Stores `new` (private, changed in place) for `live`. `owned`: its managedFields are right (server-side apply)."""
    rt = served.rt
    new = _only(rt, live, new, subresource, owned=owned)
    metadata.carry_over(live, new)
    content.decode(served, new, options)
    content.default(served, new)
    state.admission.review("UPDATE", rt, new, live)
    if new == live:
        return live
    content.validate(served, new, live, subresource)
    if subresource != "status":
        generation.settle(served, live, new)
    if rt.group_resource == CRDS and subresource == "":
        new["status"] = established_status(new, state.now())
    if not owned:
        new = track_update(live, new, manager=options.manager, **ownership(state, served, subresource))
    if options.dry_run:
        return new
    if deletion.is_free(rt, new):
        # What was never written has no version of its own: the answer has that of before.
        remove(state, rt, new)
        return new
    options.warnings += metadata.warnings(rt, new["metadata"], live)
    state.put(rt, new)
    return new


def _only(rt: ResourceType, live: Json, new: Json, subresource: Subresource, *, owned: bool) -> Json:
    """`new` limited to what this subresource may write. A writer of the main resource may edit managedFields (kubectl
    does, when it goes over to server-side apply); one that leaves them out keeps them."""
    fields = new["metadata"].get("managedFields")
    if not owned and (subresource or not metadata.is_ownership(fields)):
        fields = live["metadata"].get("managedFields")
    if subresource == "status":
        if "status" not in rt.subresources:
            raise ApiError("NotFound", "the server could not find the requested resource")
        status, annotations = new.get("status"), new["metadata"].get("annotations")
        new = {**live, "metadata": dict(live["metadata"]), "status": status}
        if rt.group_resource in ANNOTATED_BY_STATUS and annotations:
            new["metadata"]["annotations"] = annotations
        if status is None:
            del new["status"]
        new = copy(new)
    elif "status" in rt.subresources:
        new.pop("status", None)
        if "status" in live:
            new["status"] = live["status"]
    new["metadata"].pop("managedFields", None)
    if fields is not None:
        new["metadata"]["managedFields"] = fields
    return new


def _check_namespace(state: State, rt: ResourceType, new: Json) -> None:
    if not rt.namespaced:
        return
    namespace = new["metadata"]["namespace"] or ""
    entry = state.store.get(NAMESPACES, Key("", namespace))
    if entry is None:
        raise refusals.not_found(state.catalog.stored("", NAMESPACES), namespace)
    if entry.obj["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise refusals.forbidden(rt, new["metadata"]["name"], why, [cause])
