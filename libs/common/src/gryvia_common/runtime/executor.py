"""Carries a plan out: the only place where the services write to Kubernetes.

The order is fixed (see plan.py). What is already so costs no request: a child that covers what is wanted, a status that says
the same, a delete that is under way. Answers of the API server go straight into the cache, so the next pass sees them. A child
that the API server refuses, or that belongs to somebody else, becomes a Refusal for the next pass and is not asked for again
until what is asked changes; the status of this pass is then left unwritten, it was decided without knowing. Other objects that
look at what was written are told as well: the bus will bring them nothing newer.

First writes are POSTs and later ones server-side applies: a create cannot overwrite a stranger's object of the same name,
which is not in the cache because it lacks our label (an apply with force would). What is nobody's child is created the same way
and changed by merge patches only, with the uid and, where several write it, the resourceVersion that was decided on.

Only what was looked at is deleted: a delete carries the uid and the resourceVersion that the plan was decided on. A view that is
behind (a late watch, a replica that takes over) may hold a workload that has ended by now for one that runs on; then the delete
is refused, the child is read, and the next pass decides on what is so.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import orjson

from gryvia_common.bus.connection import Bus
from gryvia_common.bus.events import DomainEvent
from gryvia_common.clock import Clock
from gryvia_common.errors import Conflict, Gone, Terminal
from gryvia_common.kube.children import is_controlled_by
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, Key, metadata, uid_of
from gryvia_common.kube.resources import Resource
from gryvia_common.runtime.cache import Change, ObjectCache, ObjectId
from gryvia_common.runtime.differences import covers, merge_difference, project
from gryvia_common.runtime.plan import Apply, Delete, Patch, Plan
from gryvia_common.runtime.recorder import Recorder
from gryvia_common.runtime.world import Refusal, World

REFUSED_FOR = timedelta(seconds=30)
"""After this long a refusal that may pass is put to the test again."""

DELETED_FOR = timedelta(seconds=60)
"""How long a delete that the API server took is believed before it is sent again."""

ChildId = tuple[Resource, Key]


@dataclass(slots=True)
class Memory:
    """What the executor remembers of one object between passes. Losing it (a crash) costs requests, never correctness."""

    object: ObjectId
    refusals: dict[tuple[Resource, str], tuple[Refusal, datetime]] = field(default_factory=dict)
    accepted: dict[ChildId, tuple[str, str]] = field(default_factory=dict)
    deleted: dict[str, datetime] = field(default_factory=dict)

    def known_refusals(self) -> dict[tuple[Resource, str], Refusal]:
        return {id: refusal for id, (refusal, _) in self.refusals.items()}


class Executor:
    """Writes as field manager `gryvia-<service>`. Raises Transient, Conflict, Gone and (about the object itself) Terminal.
    `spread` is told what changed in the cache, and by the pass of which object."""

    def __init__(
        self,
        kube: Kube,
        bus: Bus,
        cache: ObjectCache,
        recorder: Recorder,
        clock: Clock,
        *,
        manager: str,
        spread: Callable[[Change | None, ObjectId], None],
    ) -> None:
        self._kube = kube
        self._bus = bus
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._manager = manager
        self._spread = spread

    async def carry_out(
        self, resource: Resource, raw: Json, world: World, plan: Plan, memory: Memory, status_keys: frozenset[str]
    ) -> bool:
        """Make it so; whether anything was changed (then the object deserves another pass at once). `world`: what the plan
        was decided on."""
        await self._emit(plan.emit)
        changed = False
        for delete in plan.delete:
            seen = world.child(delete.resource, delete.name)
            version = str(metadata(seen)["resourceVersion"]) if seen and uid_of(seen) == delete.uid else ""
            changed |= await self._delete(delete, memory, version)
        refused = False
        deleting = bool(metadata(raw).get("deletionTimestamp"))
        for apply in () if deleting else plan.apply:
            outcome = await self._apply(resource, raw, apply, memory)
            changed |= outcome != "same"
            refused |= outcome == "refused"
        if refused:
            return True
        for patch in plan.patch:
            outcome = await self._patch(patch, memory)
            changed |= outcome == "changed"
            if outcome == "stopped" or (outcome == "changed" and patch.uid == uid_of(raw)):
                return True
        for record in plan.record:
            await self._recorder.record(resource, raw, record)
        if plan.metadata is not None:
            raw = await self._patch_metadata(resource, raw, plan.metadata, memory)
            changed = True
        if plan.status is not None:
            changed |= await self._patch_status(resource, raw, plan.status.wire(), status_keys, memory)
        return changed

    async def _emit(self, events: Sequence[DomainEvent]) -> None:
        """All sent in their order before the first is answered, which costs one wait for the bus and not one each; each is
        stored, or the pass fails and sends them again."""
        at = self._clock.now()
        sent = [self._bus.emit(event, source=self._manager, at=at) for event in events]
        for outcome in await asyncio.gather(*sent, return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def _delete(self, delete: Delete, memory: Memory, version: str) -> bool:
        """`version`: of the child as the plan saw it; empty when it is none of the object's children."""
        key = Key(delete.namespace, delete.name)
        now = self._clock.now()
        sent = memory.deleted.get(delete.uid)
        if sent is not None and now - sent < DELETED_FOR:
            return False
        try:
            await self._kube.delete(
                delete.resource,
                delete.namespace,
                delete.name,
                uid=delete.uid,
                version=version,
                propagation=delete.propagation,
            )
        except Gone:
            self._lost(memory, delete.resource, key, delete.uid)
        except Conflict:
            # Newer than what was decided on, or another object under the name: look at it first.
            await self._read_child(memory, delete.resource, key, delete.uid)
            return True
        memory.deleted = {uid: at for uid, at in memory.deleted.items() if now - at < DELETED_FOR}
        memory.deleted[delete.uid] = now
        return True

    async def _confirm(self, kind: Resource, owner: Json) -> None:
        """A child that was there is gone. Before it is made again: does its owner still live? Of a deleted object the
        children may be seen to go first, for each type comes on a watch of its own. Raises Gone, or Conflict when the
        owner has to be looked at again."""
        meta = metadata(owner)
        live = await self._kube.get(kind, meta.get("namespace") or "", meta["name"])
        if uid_of(live) != meta["uid"] or metadata(live).get("deletionTimestamp"):
            raise Conflict(f"{kind.kind} {meta['name']} is being deleted, or is another one by now")

    async def _read_child(self, memory: Memory, resource: Resource, key: Key, uid: str) -> None:
        try:
            live = await self._kube.get(resource, key.namespace, key.name)
        except Gone:
            self._lost(memory, resource, key, uid)
        else:
            self._learnt(memory, resource, live)

    def _learnt(self, memory: Memory, resource: Resource, answer: Json) -> None:
        self._spread(self._cache.put(resource.plural, answer), memory.object)

    def _lost(self, memory: Memory, resource: Resource, key: Key, uid: str) -> None:
        self._spread(self._cache.remove(resource.plural, key, uid, 0), memory.object)

    async def _apply(self, kind: Resource, owner: Json, apply: Apply, memory: Memory) -> str:
        resource, manifest = apply.resource, apply.manifest
        meta = metadata(manifest)
        key = Key(meta.get("namespace") or "", meta["name"])
        if self._still_refused(memory, resource, key, manifest):
            return "same"
        live = self._cache.get(resource.plural, key)
        if live is not None and not apply.owned:
            return "same"
        try:
            if live is None:
                if self._cache.was_removed(resource.plural, key):
                    await self._confirm(kind, owner)
                return await self._create(owner, apply, key, memory)
            if not is_controlled_by(live, owner):
                return self._refuse(memory, resource, key, manifest, *_collision(resource, live))
            if metadata(live).get("deletionTimestamp") or apply.create_only or covers(live, manifest):
                return "same"
            if memory.accepted.get((resource, key)) == _as_accepted(manifest, live):
                return "same"
            answer = await self._kube.apply(resource, manifest, manager=self._manager)
            self._accept(memory, apply, key, answer)
            return "changed"
        except Terminal as error:
            return self._refuse(memory, resource, key, manifest, error.reason, str(error))

    async def _create(self, owner: Json, apply: Apply, key: Key, memory: Memory) -> str:
        resource = apply.resource
        try:
            answer = await self._kube.create(resource, apply.manifest, manager=self._manager)
        except Conflict:
            live = await self._kube.get(resource, key.namespace, key.name)
            if apply.owned and not is_controlled_by(live, owner):
                return self._refuse(memory, resource, key, apply.manifest, *_collision(resource, live))
            # Ours: an earlier create whose answer was lost, or that the bus has not shown yet.
            self._learnt(memory, resource, live)
            return "changed"
        self._accept(memory, apply, key, answer)
        return "changed"

    async def _patch(self, patch: Patch, memory: Memory) -> str:
        resource, key = patch.resource, Key(patch.namespace, patch.name)
        live = self._cache.get(resource.plural, key)
        if live is not None and uid_of(live) == patch.uid and covers(live, patch.body):
            return "same"
        if self._still_refused(memory, resource, key, patch.body):
            return "same"
        version = {"resourceVersion": patch.version} if patch.version else {}
        body = {**patch.body, "metadata": {**patch.body.get("metadata", {}), "uid": patch.uid, **version}}
        try:
            answer = await self._kube.patch(resource, patch.namespace, patch.name, body, manager=self._manager)
        except (Conflict, Gone):
            # Somebody was faster, or it is another object by now: what the plan rests on is no longer so.
            await self._read_child(memory, resource, key, patch.uid)
            return "stopped"
        except Terminal as error:
            self._refuse(memory, resource, key, patch.body, error.reason, str(error))
            return "stopped"
        self._learnt(memory, resource, answer)
        return "changed"

    def _accept(self, memory: Memory, apply: Apply, key: Key, answer: Json) -> None:
        """What the server made of our words is what we want, also where it put them differently."""
        self._learnt(memory, apply.resource, answer)
        if not apply.create_only and not covers(answer, apply.manifest):
            memory.accepted[apply.resource, key] = _as_accepted(apply.manifest, answer)

    def _still_refused(self, memory: Memory, resource: Resource, key: Key, sent: Json) -> bool:
        """Whether the API server said no to the very same before, and nothing suggests that it would not again."""
        before = memory.refusals.get((resource, key.name))
        if before is None:
            return False
        refusal, at = before
        if refusal.sent == sent and not (refusal.may_pass and self._clock.now() - at >= REFUSED_FOR):
            return True
        del memory.refusals[resource, key.name]
        return False

    def _refuse(self, memory: Memory, resource: Resource, key: Key, sent: Json, reason: str, message: str) -> str:
        refusal = Refusal(resource, key.name, reason, message, sent)
        memory.refusals[resource, key.name] = (refusal, self._clock.now())
        return "refused"

    async def _patch_metadata(self, resource: Resource, raw: Json, change: Json, memory: Memory) -> Json:
        meta = metadata(raw)
        body = {"metadata": {**change, "resourceVersion": meta["resourceVersion"]}}
        answer = await self._kube.patch(resource, meta.get("namespace", ""), meta["name"], body, manager=self._manager)
        self._learnt(memory, resource, answer)
        return answer

    async def _patch_status(
        self, resource: Resource, raw: Json, status: Json, removable: frozenset[str], memory: Memory
    ) -> bool:
        current: Json = raw.get("status") or {}
        difference = merge_difference(current, status, removable=removable)
        if not difference:
            return False
        meta = metadata(raw)
        body = {"metadata": {"resourceVersion": meta["resourceVersion"], "uid": meta["uid"]}, "status": difference}
        answer = await self._kube.patch(
            resource, meta.get("namespace", ""), meta["name"], body, subresource="status", manager=self._manager
        )
        self._learnt(memory, resource, answer)
        return True


def _collision(resource: Resource, live: Json) -> tuple[str, str]:
    name = metadata(live)["name"]
    return (
        "NameCollision",
        f"{resource.kind} {name} exists already and belongs to somebody else; delete or rename it, or rename this object",
    )


def _as_accepted(manifest: Json, live: Json) -> tuple[str, str]:
    return _digest(manifest), _digest(project(live, manifest))


def _digest(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()
