"""`metadata.managedFields`: who owns which fields, read into entries and written back in the real server's order.

An entry is identified by manager, operation, subresource and, for updates only, apiVersion. `track_update` does the
accounting of every write that is not an apply: what changed becomes the writer's alone, what vanished leaves every set.
Time moves only when a set moves, so a write that changes nothing leaves the object byte for byte as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gryvia_devcluster.patch import fieldset
from gryvia_devcluster.patch.builtin import builtin_topology
from gryvia_devcluster.patch.compare import compare
from gryvia_devcluster.patch.copying import deep_copy
from gryvia_devcluster.patch.fieldset import EMPTY, FieldSet
from gryvia_devcluster.patch.topology import Node, from_schema
from gryvia_devcluster.types import Json

UPDATE_LIMIT = 10
ANCIENT = "ancient-changes"

# Identity and bookkeeping of the server: never owned by anybody.
STRIPPED: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        **{
            f"f:{name}": {}
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "selfLink",
                "uid",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        },
    },
}


@dataclass(frozen=True, slots=True)
class ManagerId:
    manager: str
    operation: str
    api_version: str
    subresource: str


@dataclass(slots=True)
class Entry:
    api_version: str
    fields: FieldSet
    time: str | None


Managed = dict[ManagerId, Entry]


def identify(manager: str, operation: str, api_version: str, subresource: str) -> ManagerId:
    return ManagerId(manager or "unknown", operation, "" if operation == "Apply" else api_version, subresource)


def decode(managed_fields: Iterable[Json] | None) -> Managed:
    out: Managed = {}
    for entry in managed_fields or ():
        fields = entry.get("fieldsV1")
        if not fields:
            continue
        version = entry.get("apiVersion", "")
        key = identify(
            entry.get("manager", ""), entry.get("operation", "Update"), version, entry.get("subresource", "")
        )
        out[key] = Entry(version, fields, entry.get("time"))
    return out


def encode(managed: Managed) -> list[Json]:
    """Applies first, then by time, manager, apiVersion and subresource."""
    ordered = sorted(
        managed.items(),
        key=lambda item: (
            item[0].operation,
            item[1].time or "",
            item[0].manager,
            item[1].api_version,
            item[0].subresource,
        ),
    )
    return [
        {
            "manager": key.manager,
            "operation": key.operation,
            "apiVersion": entry.api_version,
            **({"time": entry.time} if entry.time else {}),
            "fieldsType": "FieldsV1",
            "fieldsV1": entry.fields,
            **({"subresource": key.subresource} if key.subresource else {}),
        }
        for key, entry in ordered
    ]


def with_managed(obj: Json, managed: Managed) -> Json:
    """A fresh copy of `obj` with these managedFields."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "managedFields"}
    if managed:
        metadata["managedFields"] = encode(managed)
    return deep_copy({**obj, "metadata": metadata})


def without_managed(obj: Json) -> Json:
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


# A pure cache, the one state of this module: schemas are dicts, which neither lru_cache nor a weak reference takes.
_topologies: dict[int, tuple[Json, Node]] = {}


def topology(schema: Json | None, group_kind: tuple[str, str]) -> Node:
    """The topology of a type; a schema is compiled once for as long as the same dict is passed."""
    if schema is None:
        return builtin_topology(group_kind)
    cached = _topologies.get(id(schema))
    if cached is None or cached[0] is not schema:
        if len(_topologies) >= 256:
            _topologies.clear()
        cached = _topologies[id(schema)] = (schema, from_schema(schema))
    return cached[1]


def scoped(fields: FieldSet, subresource: str) -> FieldSet:
    """What a writer can own: not the server's bookkeeping, and through a status subresource nothing but the status."""
    if subresource == "status":
        fields = {key: sub for key, sub in fields.items() if key == "f:status"}
    return fieldset.difference(fields, STRIPPED)


def take_over(managed: Managed, me: ManagerId | None, changed: FieldSet, removed: FieldSet) -> Managed:
    """Everybody else without the changed fields, everybody without the removed ones; empty entries vanish."""
    out: Managed = {}
    for key, entry in managed.items():
        fields = entry.fields if key == me else fieldset.difference(entry.fields, changed)
        fields = fieldset.difference(fields, removed)
        if fields:
            out[key] = entry if fields is entry.fields else Entry(entry.api_version, fields, entry.time)
    return out


def track_update(
    live: Json | None,
    new: Json,
    *,
    manager: str,
    operation: str = "Update",
    api_version: str,
    subresource: str,
    schema: Json | None,
    group_kind: tuple[str, str],
    now: str,
) -> Json:
    """`new` with managedFields after a create, update or patch. A writer may edit managedFields itself, except through
    a subresource; `[]` or `[{}]` resets them, and an object without any is not tracked until its next apply."""
    given = new.get("metadata", {}).get("managedFields")
    before = live.get("metadata", {}).get("managedFields") if live else None
    managed = decode(before)
    if not subresource and given is not None and given is not before:
        managed = {} if given in ([], [{}]) else decode(given) or managed
    if not managed and live and live.get("metadata", {}).get("uid"):
        return with_managed(new, {})
    node = topology(schema, group_kind)
    changed, removed = compare(node, without_managed(live) if live else EMPTY, without_managed(new))
    if not changed and not removed:
        return with_managed(new, managed)
    me = identify(manager, operation, api_version, subresource)
    mine = scoped(changed, subresource)
    out = take_over(managed, None, changed, removed)
    if mine:
        previous = out.get(me)
        out[me] = Entry(api_version, fieldset.union(previous.fields, mine) if previous else mine, now)
    return with_managed(new, _cap(out) if operation == "Update" else out)


def _cap(managed: Managed) -> Managed:
    """At most ten update entries: the oldest of one version are folded into `ancient-changes`."""
    updates = sorted(
        (key for key in managed if key.operation == "Update"),
        key=lambda key: (managed[key].time or "", key.manager, key.api_version, key.subresource),
    )
    if len(updates) <= UPDATE_LIMIT:
        return managed
    out, count, first = dict(managed), len(updates), {}
    for key in updates:
        if count <= UPDATE_LIMIT:
            break
        version = managed[key].api_version
        if version not in first:
            first[version] = key
            continue
        bucket = identify(ANCIENT, "Update", version, "")
        if bucket not in out:
            out[bucket] = out.pop(first[version])
        fields: Any = fieldset.union(out[bucket].fields, managed[key].fields)
        out[bucket] = Entry(version, fields, managed[key].time)
        if key != bucket:
            del out[key]
        count -= 1
    return out
