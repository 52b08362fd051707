"""Object metadata: what the server sets, what a client may set, and what stays.

Pure functions over one object. Invariant: uid, creationTimestamp, deletionTimestamp, generation and resourceVersion are the
server's; whatever a client sends for them is replaced.
"""

from __future__ import annotations

import json
import re
import secrets
import uuid
from typing import Any

from gryvia_devcluster.api import refusals
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store.qualified import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_HINT,
    SUBDOMAIN_HINT,
    key_errors,
    value_errors,
)
from gryvia_devcluster.types import Json, ResourceType

_SEGMENT = re.compile(r"^[^/%]+$")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LABEL_NAMED = frozenset({"namespaces", "services"})
_SEGMENT_NAMED = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})
_KEPT = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_SERVER_SET = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def prepare_new(rt: ResourceType, namespace: str | None, obj: Json, *, now: str, generation: bool) -> None:
    """Fills in the metadata of an object that is about to be created; one without a name is refused later, by `validate`.
    Raises ApiError."""
    meta = obj["metadata"]
    if meta.get("resourceVersion"):
        raise ApiError("", "resourceVersion should not be set on objects to be created")
    for field in _SERVER_SET:
        meta.pop(field, None)
    _check_namespace(rt, namespace, meta)
    if not meta.get("name") and meta.get("generateName"):
        suffix = "".join(secrets.choice(_ALPHABET) for _ in range(5))
        meta["name"] = f"{meta['generateName'][:58]}{suffix}"
    meta.setdefault("name", "")
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = now
    if generation:
        meta["generation"] = 1


def _check_namespace(rt: ResourceType, namespace: str | None, meta: Json) -> None:
    if not rt.namespaced:
        meta.pop("namespace", None)
        return
    given = meta.setdefault("namespace", namespace)
    if given != namespace:
        raise ApiError(
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        )


def carry_over(live: Json, new: Json) -> None:
    """Puts the server's own fields of `live` into `new` (in place)."""
    old, meta = live["metadata"], new["metadata"]
    for field in _KEPT:
        if field in old:
            meta[field] = old[field]
        else:
            meta.pop(field, None)
    meta["resourceVersion"] = old["resourceVersion"]
    if "generateName" in old:
        meta.setdefault("generateName", old["generateName"])


def check_identity(
    rt: ResourceType, name: str, namespace: str | None, live: Json, new: Json, *, whole: bool = False
) -> None:
    """Preconditions that ride in the body of an update (`whole`) or a patch: name, namespace, uid and resourceVersion.
    Raises ApiError."""
    old, meta = live["metadata"], new["metadata"]
    if meta.get("name", name) != name:
        raise ApiError(
            "BadRequest", f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
        )
    if rt.namespaced and meta.get("namespace", namespace) != namespace:
        raise ApiError(
            "BadRequest",
            f"the namespace of the object ({meta['namespace']}) does not match the namespace on the URL ({namespace})",
        )
    if meta.get("uid") and meta["uid"] != old["uid"]:
        if not whole:
            cause = refusals.invalid_value("metadata.uid", meta["uid"], "field is immutable")
            # Of a custom object the real server says it twice.
            raise refusals.invalid(rt, name, [cause] if rt.schema is None else [cause, cause])
        raise refusals.wrong_uid(rt, name, meta["uid"], old["uid"])
    if meta.get("resourceVersion") and meta["resourceVersion"] != old["resourceVersion"]:
        raise refusals.modified(rt, name)


def validate(rt: ResourceType, meta: Json, live: Json | None) -> list[refusals.Cause]:
    causes = [] if live else name_causes(rt, meta["name"])
    # What the real server checks of an update in several places it tells as often.
    often, twice = (3, 2) if live and rt.schema is not None else (1, 1)
    causes += often * _key_value_causes(meta)
    causes += _controller_causes(meta)
    if live and live["metadata"].get("deletionTimestamp"):
        causes += twice * _added_finalizer_causes(live["metadata"], meta)
    for index, finalizer in enumerate(meta.get("finalizers") or []):
        where = f"metadata.finalizers[{index}]"
        causes += _key_causes(where, finalizer)
        if rt.schema is None and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(refusals.invalid_value(where, finalizer, why))
    return causes


def _key_value_causes(meta: Json) -> list[refusals.Cause]:
    causes: list[refusals.Cause] = []
    for key, value in (meta.get("labels") or {}).items():
        causes += _key_causes("metadata.labels", key)
        causes += [refusals.invalid_value("metadata.labels", value, why) for why in value_errors(value)]
    for key in meta.get("annotations") or {}:
        causes += _key_causes("metadata.annotations", key)
    for owner in meta.get("ownerReferences") or []:
        missing = [field for field in ("apiVersion", "kind", "name", "uid") if not owner.get(field)]
        causes += [
            refusals.invalid_value(f"metadata.ownerReferences.{field}", "", "must not be empty") for field in missing
        ]
    return causes


def _added_finalizer_causes(old: Json, meta: Json) -> list[refusals.Cause]:
    added = [finalizer for finalizer in meta.get("finalizers") or [] if finalizer not in (old.get("finalizers") or [])]
    if not added:
        return []
    listed = ", ".join(json.dumps(finalizer) for finalizer in added)
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [refusals.forbidden_field("metadata.finalizers", why)]


def warnings(rt: ResourceType, meta: Json, live: Json | None) -> list[str]:
    """What is let through with a word of advice."""
    known = ((live or {}).get("metadata") or {}).get("finalizers") or []
    return [
        f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name to avoid accidental conflicts with '
        "other finalizer writers"
        for finalizer in meta.get("finalizers") or []
        if rt.schema is not None
        and "/" not in finalizer
        and finalizer not in _STANDARD_FINALIZERS
        and finalizer not in known
    ]


def tidy(meta: Json) -> None:
    """Empty maps and lists are not stored, as in the real server, whose ObjectMeta leaves them out."""
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if field in meta and not meta[field]:
            del meta[field]


def is_ownership(fields: Any) -> bool:
    """True for managedFields that can be read; what a client sends otherwise is ignored, as by the real server."""

    def is_set(value: Any) -> bool:
        return isinstance(value, dict) and all(is_set(inner) for inner in value.values())

    return isinstance(fields, list) and all(
        isinstance(entry, dict)
        and entry.get("fieldsType", "FieldsV1") == "FieldsV1"
        and is_set(entry.get("fieldsV1") or {})
        for entry in fields
    )


def name_causes(rt: ResourceType, name: str) -> list[refusals.Cause]:
    where = "metadata.name"
    if not name:
        return [refusals.required(where, "name or generateName is required")]
    if rt.plural in _LABEL_NAMED and not rt.group:
        return [] if DNS_LABEL.match(name) and len(name) <= 63 else [refusals.invalid_value(where, name, LABEL_HINT)]
    if rt.plural in _SEGMENT_NAMED:
        return [] if _SEGMENT.match(name) else [refusals.invalid_value(where, name, "may not contain '/' or '%'")]
    if len(name) > 253:
        return [refusals.invalid_value(where, name, "must be no more than 253 characters")]
    return [] if DNS_SUBDOMAIN.match(name) else [refusals.invalid_value(where, name, SUBDOMAIN_HINT)]


def _key_causes(where: str, key: str) -> list[refusals.Cause]:
    return [refusals.invalid_value(where, key, why) for why in key_errors(key)]


def _controller_causes(meta: Json) -> list[refusals.Cause]:
    owners: list[Any] = [owner for owner in meta.get("ownerReferences") or [] if owner.get("controller")]
    if len(owners) < 2:
        return []
    first, second = (f"{owner.get('kind')}/{owner.get('name')}" for owner in owners[:2])
    why = f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
    shown = [{field: owner[field] for field in _OWNER_FIELDS if field in owner} for owner in meta["ownerReferences"]]
    return [refusals.invalid_value("metadata.ownerReferences", shown, why)]
