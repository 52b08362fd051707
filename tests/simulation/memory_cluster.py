"""An API server that is a dictionary, with what the services rely on: versions, uids, conflicts, finalizers, owner-reference
garbage collection, merge patches and a simple server-side apply. It keeps the log of all changes, which is what a bridge would see.

Uids follow from the name and how often it was used, so that two runs can be compared.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from gryvia_common.errors import Conflict, Gone
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kube.children import MANAGED_BY, MANAGER
from gryvia_common.kube.objects import Json, Key, labels_of, metadata, uid_of
from gryvia_common.kube.resources import Resource

Id = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log. `body`: the object as bytes, also of a deleted one. `republished`: whether the bridge carries it:
    Gryvia's kinds whole, of the others what is labelled as ours."""

    op: Literal["created", "changed", "deleted"]
    plural: str
    key: Key
    uid: str
    version: int
    body: bytes
    republished: bool


class MemoryCluster:
    """`watchers` are called for every change, in order. What is stored is never changed in place."""

    def __init__(self, now: Callable[[], Any]) -> None:
        self.objects: dict[Id, Json] = {}
        self.log: list[Change] = []
        self.watchers: list[Callable[[Change], None]] = []
        self._now = now
        self._version = 100
        self._uses: Counter[Id] = Counter()

    def get(self, resource: Resource, namespace: str, name: str) -> Json:
        return copied(self._stored((resource.plural, namespace, name)))

    def _stored(self, id: Id) -> Json:
        found = self.objects.get(id)
        if found is None:
            raise Gone(f"{id[0]} {id[1]}/{id[2]} not found")
        return found

    def of(self, resource: Resource) -> list[Json]:
        return [obj for (plural, _, _), obj in sorted(self.objects.items()) if plural == resource.plural]

    def create(self, resource: Resource, obj: Json) -> Json:
        made = copied(obj)
        meta = made["metadata"]
        id = (resource.plural, meta.get("namespace") or "", meta["name"])
        if id in self.objects:
            raise Conflict(f"{resource.plural} {meta['name']} already exists")
        self._uses[id] += 1
        meta["uid"] = f"{resource.plural}-{meta['name']}-{self._uses[id]}"
        meta["generation"] = 1
        meta["creationTimestamp"] = timestamp(self._now())
        made.update(apiVersion=resource.api_version, kind=resource.kind)
        if _owners(made) and not _owners(made) & {uid_of(other) for other in self.objects.values()}:
            asyncio.get_running_loop().call_later(1.0, self.collect)
        return self._store("created", resource.plural, id, made)

    def change(
        self, resource: Resource, namespace: str, name: str, patch: Json, *, only: str = "", replace_lists: bool = True
    ) -> Json:
        """A merge patch; `only` "status" takes nothing else of it. Conflict on another resourceVersion or uid."""
        id = (resource.plural, namespace, name)
        before = self._stored(id)
        meta = patch.get("metadata") or {}
        for field in ("resourceVersion", "uid"):
            if field in meta and meta[field] != before["metadata"][field]:
                raise Conflict(f"{name}: {field} is {before['metadata'][field]}, not {meta[field]}")
        part = {"status": patch.get("status")} if only == "status" else patch
        after: Json = merged(before, part)
        after["metadata"] = {**after["metadata"], "uid": before["metadata"]["uid"]}
        if after.get("spec") != before.get("spec"):
            after["metadata"]["generation"] = before["metadata"]["generation"] + 1
        if {**after, "metadata": {**after["metadata"], "resourceVersion": ""}} == {
            **before,
            "metadata": {**before["metadata"], "resourceVersion": ""},
        }:
            return copied(before)
        if after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            return self._remove(id, after)
        return self._store("changed", resource.plural, id, after)

    def collect(self) -> None:
        """The garbage collector: what has owners, none of which lives, goes."""
        while True:
            alive = {uid_of(obj) for obj in self.objects.values()}
            orphans = [id for id, obj in sorted(self.objects.items()) if (o := _owners(obj)) and not alive & o]
            if not orphans:
                return
            for id in orphans:
                self._store("deleted", id[0], id, self.objects.pop(id))

    def delete(self, resource: Resource, namespace: str, name: str, *, uid: str = "", version: str = "") -> None:
        before = self.get(resource, namespace, name)
        if uid and uid_of(before) != uid:
            raise Conflict(f"{name}: uid is {uid_of(before)}, not {uid}")
        if version and before["metadata"]["resourceVersion"] != version:
            raise Conflict(f"{name}: resourceVersion is {before['metadata']['resourceVersion']}, not {version}")
        id = (resource.plural, namespace, name)
        if not before["metadata"].get("finalizers"):
            self._remove(id, before)
        elif not before["metadata"].get("deletionTimestamp"):
            before["metadata"]["deletionTimestamp"] = timestamp(self._now())
            self._store("changed", resource.plural, id, before)

    def _remove(self, id: Id, last: Json) -> Json:
        del self.objects[id]
        gone = self._store("deleted", id[0], id, last)
        self.collect()
        return gone

    def _store(self, op: Literal["created", "changed", "deleted"], plural: str, id: Id, obj: Json) -> Json:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        if op != "deleted":
            self.objects[id] = obj
        body = orjson.dumps(obj)
        ours = plural.startswith("gryvia") or labels_of(obj).get(MANAGED_BY) == MANAGER
        change = Change(op, plural, Key(id[1], id[2]), uid_of(obj), self._version, body, ours)
        self.log.append(change)
        for watcher in self.watchers:
            watcher(change)
        answer: Json = orjson.loads(body)
        return answer


def copied(obj: Json) -> Json:
    """By way of bytes: ten times as fast as copy.deepcopy."""
    found: Json = orjson.loads(orjson.dumps(obj))
    return found


def merged(target: Any, patch: Any) -> Any:
    """JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _owners(obj: Json) -> set[str]:
    return {ref["uid"] for ref in metadata(obj).get("ownerReferences") or ()}
