"""The one imperative part of all controllers: watch, queue, sync, carry out.

A Controller says which resource it is for, what it wants to see with each object and which other objects should wake
it; its `sync` is pure. The shell runs every controller in one task over one queue: the API is synchronous, so a pass and
its writes happen without anything in between, which gives devcluster the atomicity a real controller has to build from
expectations and uncounted lists.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gryvia_devcluster.clock import Clock
from gryvia_devcluster.controllers.actions import Action, Again, Create, Emit, Merge, Remove, Replace
from gryvia_devcluster.controllers.cache import Cache, Ref, ref_of
from gryvia_devcluster.controllers.queue import KeyedQueue
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Api, Json, PatchType, ResourceType

log = logging.getLogger(__name__)

_UNWATCHED = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Controller:
    """`gather` reads the cache, `wake` maps a changed object (any resource) to the objects to sync again, and
    `cares` tells whether a change (old, new) of an own object is worth a pass. Resource `*` is every resource."""

    name: str
    resource: str
    gather: Callable[[Cache, Json], Sequence[Json]]
    sync: Callable[[Json, Sequence[Json], datetime], Iterable[Action]]
    wake: Callable[[Cache, Ref, Json], Iterable[Ref]] = lambda cache, ref, obj: ()
    cares: Callable[[Json | None, Json | None], bool] = lambda old, new: True


class Shell:
    def __init__(self, api: Api, clock: Clock, controllers: Sequence[Controller]) -> None:
        self._api = api
        self._clock = clock
        self._controllers = {c.name: c for c in controllers}
        self._cache = Cache(self._lookup)
        self._queue: KeyedQueue[tuple[str, Ref]] = KeyedQueue(clock)
        self._types: dict[tuple[str, str], ResourceType] = {}
        self._watched: set[str] = set()
        self._types_changed = False
        self._cache.listen(self._on_change)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._watch_new_types(group)
            group.create_task(self._queue.run_timers())
            group.create_task(self._work(group))

    async def _work(self, group: asyncio.TaskGroup) -> None:
        done = 0
        while True:
            name, ref = await self._queue.get()
            self._pass(name, ref)
            if self._types_changed:
                self._watch_new_types(group)
            done += 1
            if done % _BATCH == 0:
                await asyncio.sleep(0)

    def _watch_new_types(self, group: asyncio.TaskGroup) -> None:
        """A CustomResourceDefinition may have brought a type; the garbage collector has to see its objects too."""
        self._types_changed = False
        for rt in self._api.types():
            if rt.group_resource not in self._watched and rt.group_resource not in _UNWATCHED:
                self._watched.add(rt.group_resource)
                objects, since = self._api.list(rt)
                self._replace(rt, objects)
                group.create_task(self._watch(rt, since))
            self._types[rt.api_version, rt.kind] = rt

    async def _watch(self, rt: ResourceType, since: int) -> None:
        while True:
            try:
                async for event in self._api.watch(rt, since):
                    if event.type == "DELETED":
                        self._cache.confirm_gone(rt, event.object)
                    elif event.type != "BOOKMARK":
                        self._cache.put(rt, event.object)
            except ApiError as error:
                if error.reason != "Expired":
                    log.warning("watch ended", extra={"resource": rt.group_resource, "error": str(error)})
                    await self._clock.sleep(1.0)
            objects, since = self._api.list(rt)
            self._replace(rt, objects)

    def _replace(self, rt: ResourceType, objects: Sequence[Json]) -> None:
        kept = {ref_of(rt, obj) for obj in objects}
        for ref in self._cache.refs(rt.group_resource):
            old = self._cache.at(ref)
            if ref not in kept and old is not None:
                self._cache.drop(rt, old)
        for obj in objects:
            self._cache.put(rt, obj)

    def _on_change(self, ref: Ref, old: Json | None, new: Json | None) -> None:
        self._types_changed = self._types_changed or ref.resource == _DEFINITIONS
        for controller in self._controllers.values():
            if controller.resource in ("*", ref.resource) and controller.cares(old, new):
                self._queue.add((controller.name, ref))
            woken = {
                target for obj in (old, new) if obj is not None for target in controller.wake(self._cache, ref, obj)
            }
            for target in sorted(woken, key=lambda r: (r.resource, r.namespace, r.name)):
                self._queue.add((controller.name, target))

    def _pass(self, name: str, ref: Ref) -> None:
        key = (name, ref)
        controller = self._controllers[name]
        obj = self._cache.at(ref)
        if obj is None:
            self._queue.succeeded(key)
            return
        try:
            for action in controller.sync(obj, controller.gather(self._cache, obj), self._clock.now()):
                self._carry_out(action, key)
        except ApiError as error:
            log.debug("sync refused", extra={"controller": name, "object": str(ref), "error": str(error)})
            self._queue.failed(key)
        except Exception:  # one bad object must not stop the controllers for all the others
            log.exception("sync failed", extra={"controller": name, "object": str(ref)})
            self._queue.failed(key)
        else:
            self._queue.succeeded(key)

    def _carry_out(self, action: Action, key: tuple[str, Ref]) -> None:
        match action:
            case Create(obj, about):
                self._create(obj, about, key[0])
            case Replace(obj, subresource):
                rt = self._type(obj)
                self._write(rt, obj, lambda ns, name: self._api.update(rt, ns, name, obj, subresource=subresource))
            case Merge(obj, body, subresource):
                self._merge(obj, body, subresource)
            case Remove(obj, propagation, about):
                self._remove(obj, propagation, about, key[0])
            case Emit(obj, reason, message, type_):
                self._event(obj, reason, message, key[0], type_)
            case Again(at):
                self._queue.add_at(key, at)

    def _event(self, about: Json, reason: str, message: str, component: str, kind: str = "Normal") -> None:
        try:
            self._api.record_event(about, type=kind, reason=reason, message=message, component=component)
        except ApiError as error:
            # A namespace on its way out takes no events; the work itself must go on there.
            log.debug("event refused", extra={"reason": reason, "error": str(error)})

    def _create(self, obj: Json, about: Json | None, component: str) -> None:
        rt = self._type(obj)
        try:
            created = self._api.create(rt, obj["metadata"].get("namespace"), obj)
        except ApiError as error:
            if about is not None:
                message = f"Error creating: {error.message}"
                self._event(about, "FailedCreate", message, component, "Warning")
            raise
        self._cache.put(rt, created)
        if about is not None:
            message = f"Created {_lower_first(rt.kind)}: {created['metadata']['name']}"
            self._event(about, "SuccessfulCreate", message, component)

    def _merge(self, obj: Json, body: Json, subresource: Literal["", "status"]) -> None:
        rt = self._type(obj)
        self._check_uid(rt, obj)
        kind: PatchType = "application/merge-patch+json"
        self._write(rt, obj, lambda ns, name: self._api.patch(rt, ns, name, body, kind, subresource=subresource))

    def _remove(self, obj: Json, propagation: str, about: Json | None, component: str) -> None:
        rt = self._type(obj)
        meta = obj["metadata"]
        namespace, name = meta.get("namespace"), meta["name"]
        try:
            self._api.delete(rt, namespace, name, propagation=propagation, uid=meta["uid"])  # type: ignore[arg-type]  # checked by Remove
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise
        self._refresh(rt, obj)
        if about is not None:
            message = f"Deleted {_lower_first(rt.kind)}: {name}"
            self._event(about, "SuccessfulDelete", message, component)

    def _write(self, rt: ResourceType, obj: Json, write: Callable[[str | None, str], Json]) -> None:
        meta = obj["metadata"]
        try:
            self._cache.put(rt, write(meta.get("namespace"), meta["name"]))
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise
            self._refresh(rt, obj)
            if error.reason == "Conflict":
                raise
            return
        # A write that takes the last finalizer of a marked object also removes it.
        if meta.get("deletionTimestamp"):
            self._refresh(rt, obj)

    def _check_uid(self, rt: ResourceType, obj: Json) -> None:
        meta = obj["metadata"]
        current = self._current(rt, obj)
        if current is not None and current["metadata"]["uid"] != meta["uid"]:
            raise ApiError("Conflict", f"{rt.kind} {meta['name']} is now another object")

    def _refresh(self, rt: ResourceType, obj: Json) -> None:
        current = self._current(rt, obj)
        if current is None or current["metadata"]["uid"] != obj["metadata"]["uid"]:
            self._cache.drop(rt, self._cache.at(ref_of(rt, obj)) or obj)
        if current is not None:
            self._cache.put(rt, current)

    def _current(self, rt: ResourceType, obj: Json) -> Json | None:
        meta = obj["metadata"]
        try:
            return self._api.get(rt, meta.get("namespace"), meta["name"])
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            return None

    def _lookup(self, api_version: str, kind: str, namespace: str, name: str) -> Json | None:
        rt = self._types.get((api_version, kind))
        if rt is None:
            raise ApiError("NotFound", f'no matches for kind "{kind}" in version "{api_version}"')
        return self._current(rt, {"metadata": {"namespace": namespace if rt.namespaced else None, "name": name}})

    def _type(self, obj: Json) -> ResourceType:
        return self._types[obj["apiVersion"], obj["kind"]]


def _lower_first(kind: str) -> str:
    return kind[:1].lower() + kind[1:]
