"""Server-side apply (KEP-555), with the semantics of structured-merge-diff's updater.

The applied configuration is merged over the live object, what the manager applied before and no longer mentions is
removed unless somebody else owns it, and a change to a field that another manager owns is a conflict unless forced. By
hand because no Python library does it; a replace or a plain merge instead would wipe what other managers own (kubectl's
second apply as `kubectl-last-applied`, which holds one annotation, is the usual victim).
"""

from __future__ import annotations

import orjson

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch import fieldset
from gryvia_devcluster.patch.claims import MalformedClaim, claims, refused
from gryvia_devcluster.patch.compare import compare
from gryvia_devcluster.patch.conflict import find_conflicts, refusal
from gryvia_devcluster.patch.copying import deep_copy
from gryvia_devcluster.patch.fieldset import EMPTY, FieldSet
from gryvia_devcluster.patch.merge import merge, remove
from gryvia_devcluster.patch.ownership import (
    Entry,
    Managed,
    decode,
    identify,
    scoped,
    take_over,
    topology,
    with_managed,
    without_managed,
)
from gryvia_devcluster.patch.topology import Node
from gryvia_devcluster.types import Json

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
SERVER_SET = frozenset(
    {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"}
)


def apply_patch(
    live: Json | None,
    applied: Json,
    *,
    manager: str,
    force: bool,
    api_version: str,
    subresource: str,
    schema: Json | None,
    group_kind: tuple[str, str],
    now: str,
) -> Json:
    """The object after the apply, with managedFields; equal to `live` where nothing changed. Raises ApiError: BadRequest
    for a malformed configuration, InternalError for items without keys, Conflict for fields of others.

    The caller has taken `status` out of `applied` where the status is a subresource, and has checked uid, resourceVersion
    and name. Through `status` a manager owns nothing but the status."""
    if applied.get("metadata", {}).get("managedFields") is not None:
        raise ApiError("BadRequest", "metadata.managedFields must be nil")
    if applied.get("apiVersion") != api_version:
        raise ApiError(
            "BadRequest",
            f"Incorrect version specified in apply patch. Specified patch version: {applied.get('apiVersion', '')}, "
            f"expected: {api_version}",
        )
    applied = _without_bookkeeping(applied)
    node = topology(schema, group_kind)
    bare: Json = without_managed(live) if live else {"apiVersion": api_version, "kind": applied.get("kind")}
    managed = decode(live.get("metadata", {}).get("managedFields")) if live else {}
    if live and not managed:
        changed, _ = compare(node, EMPTY, bare)
        first = scoped(changed, "")
        if first:
            managed = {identify("before-first-apply", "Update", api_version, ""): Entry(api_version, first, now)}

    me = identify(manager, "Apply", api_version, subresource)
    try:
        everything = claims(node, applied)
    except MalformedClaim as failed:
        raise refused(failed, applied) from failed
    claimed = scoped(everything, subresource)
    previous = managed.get(me)
    merged = merge(node, bare, applied)
    given_up = fieldset.difference(previous.fields, everything) if previous else EMPTY
    if given_up:
        others = [entry.fields for key, entry in managed.items() if key != me]
        merged = remove(node, merged, given_up, [*others, everything])
    changed, removed = compare(node, bare, merged)
    conflicts = [] if force else find_conflicts(managed, me, changed)
    if conflicts and manager == KUBECTL and live:
        allowed = _client_side_owned(node, live, api_version)
        conflicts = [each for each in conflicts if not fieldset.has(allowed, each.path)]
    if conflicts:
        raise refusal(conflicts)

    unchanged = not changed and not removed
    if unchanged and live and previous and previous.fields == claimed and previous.api_version == api_version:
        return deep_copy(live)
    after: Managed = take_over({key: entry for key, entry in managed.items() if key != me}, me, changed, removed)
    if claimed:
        # Time moves with the object, not with who owns it.
        time = now if not unchanged else previous.time if previous else None
        after[me] = Entry(api_version, claimed, time)
    if manager == KUBECTL and live and not unchanged:
        merged = _refresh_last_applied(merged, applied)
    return with_managed(merged, after)


def _without_bookkeeping(applied: Json) -> Json:
    """Manifests that tools wrote often hold `creationTimestamp: null`; what only the server sets is nobody's to apply."""
    metadata = applied.get("metadata")
    if not isinstance(metadata, dict) or SERVER_SET.isdisjoint(metadata):
        return applied
    return {**applied, "metadata": {key: value for key, value in metadata.items() if key not in SERVER_SET}}


def _client_side_owned(node: Node, live: Json, api_version: str) -> FieldSet:
    """Fields that a client-side `kubectl apply` set and that still have its values: its successor may take them
    silently."""
    text = live.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED)
    try:
        last = orjson.loads(text or "null")
        if not isinstance(last, dict) or last.get("apiVersion") != api_version:
            return EMPTY
        claimed = claims(node, last)
    except (orjson.JSONDecodeError, MalformedClaim):  # whatever a client left in the annotation: it allows nothing
        return EMPTY
    changed, removed = compare(node, last, without_managed(live))
    return fieldset.difference(fieldset.difference(claimed, changed), removed)


def _refresh_last_applied(merged: Json, applied: Json) -> Json:
    annotations = merged.get("metadata", {}).get("annotations", {})
    if not annotations.get(LAST_APPLIED):
        return merged
    text = orjson.dumps(applied, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    return {**merged, "metadata": {**merged["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}
