"""The API below HTTP: the implementation of types.Api that HTTP handlers, controllers and the node share.

Reads hand out the store's own snapshots; writes go through writing.py and removal.py. Objects of a custom type that has
several versions are stored in the storage version and handed out under the version that was asked for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from gryvia_devcluster.api import removal, writing
from gryvia_devcluster.api.admission import Created, Hook
from gryvia_devcluster.api.builtins import CRDS
from gryvia_devcluster.api.catalog import Catalog
from gryvia_devcluster.api.deletion import Propagation
from gryvia_devcluster.api.eventlog import EventLog
from gryvia_devcluster.api.options import WriteOptions
from gryvia_devcluster.api.state import State
from gryvia_devcluster.clock import Clock, RealClock
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store import Entry, FieldSelector, LabelSelector, Store
from gryvia_devcluster.types import Json, PatchType, ResourceType, Subresource, WatchEvent


class Registry:
    def __init__(self, store: Store | None = None, *, clock: Clock | None = None) -> None:
        self.state = State(store or Store(), clock or RealClock())
        self._events = EventLog(self, self.state.now)
        for entry in self.store.entries(CRDS):
            self.state.serve(entry.retain())

    @property
    def store(self) -> Store:
        return self.state.store

    @property
    def catalog(self) -> Catalog:
        return self.state.catalog

    def add_hook(self, group_resource: str, hook: Hook) -> None:
        """Calls `hook(operation, rt, new, old)` on every write of the type; see admission.py."""
        self.state.admission.add(group_resource, hook)

    def on_created(self, group_resource: str, hook: Created) -> None:
        """Calls `hook(obj)` in the same step in which an object of the type was stored."""
        self.state.admission.add_created(group_resource, hook)

    def types(self) -> Iterable[ResourceType]:
        return self.catalog.storage_types()

    def resource(self, group: str, plural: str) -> ResourceType:
        return self.catalog.stored(group, plural)

    def entry(self, rt: ResourceType, namespace: str | None, name: str) -> Entry:
        return self.state.entry(rt, namespace, name)

    def get(self, rt: ResourceType, namespace: str | None, name: str) -> Json:
        return under_version(rt, self.state.entry(rt, namespace, name).obj)

    def list(
        self, rt: ResourceType, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> tuple[list[Json], int]:
        label = LabelSelector(labels)
        field = FieldSelector(fields, self.catalog.served(rt).refuses_field)
        objects = [under_version(rt, entry.obj) for entry in self.store.entries(rt.group_resource, namespace)]
        if label or field:
            objects = [obj for obj in objects if label.matches(obj) and field.matches(obj)]
        return objects, self.store.rv

    async def watch(
        self, rt: ResourceType, since: int | None = None, *, namespace: str | None = None
    ) -> AsyncIterator[WatchEvent]:
        cursor = self.store.cursor(rt.group_resource, self.store.rv if since is None else since)
        if since is None:
            for entry in self.store.entries(rt.group_resource, namespace):
                yield WatchEvent("ADDED", under_version(rt, entry.obj))
        while True:
            for change in cursor.take():
                if namespace is None or change.entry.key.namespace == namespace:
                    yield WatchEvent(change.type, under_version(rt, change.entry.obj))
            await cursor.wait()

    def create(
        self,
        rt: ResourceType,
        namespace: str | None,
        obj: Json,
        *,
        manager: str = "devcluster",
        options: WriteOptions | None = None,
    ) -> Json:
        return writing.create(self.state, self.catalog.served(rt), namespace, obj, options or WriteOptions(manager))

    def update(
        self,
        rt: ResourceType,
        namespace: str | None,
        name: str,
        obj: Json,
        *,
        subresource: Subresource = "",
        manager: str = "devcluster",
        options: WriteOptions | None = None,
    ) -> Json:
        served, live = self.catalog.served(rt), self.get(rt, namespace, name)
        return writing.update(self.state, served, live, obj, subresource, options or WriteOptions(manager))

    def patch(
        self,
        rt: ResourceType,
        namespace: str | None,
        name: str,
        body: Any,
        patch_type: PatchType,
        *,
        subresource: Subresource = "",
        manager: str = "devcluster",
        force: bool = False,
        options: WriteOptions | None = None,
    ) -> Json:
        served, options = self.catalog.served(rt), options or WriteOptions(manager, force=force)
        if patch_type == "application/apply-patch+yaml":
            if subresource == "scale":
                raise ApiError("UnsupportedMediaType", "server-side apply on the scale subresource is not modelled")
            return writing.apply(self.state, served, namespace, name, body, subresource, options)
        live = self.get(rt, namespace, name)
        return writing.patch(self.state, served, live, body, patch_type, subresource, options)

    def delete(
        self,
        rt: ResourceType,
        namespace: str | None,
        name: str,
        *,
        propagation: Propagation | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Json:
        return removal.delete(
            self.state,
            rt,
            namespace,
            name,
            propagation=propagation,
            uid=uid,
            resource_version=resource_version,
            grace_seconds=grace_seconds,
            dry_run=dry_run,
        )

    def record_event(self, obj: Json, *, type: str, reason: str, message: str, component: str) -> None:
        self._events.record(obj, type=type, reason=reason, message=message, component=component)


def under_version(rt: ResourceType, obj: Json) -> Json:
    """The object under the version it was asked for (conversion strategy None: only apiVersion changes)."""
    return obj if obj["apiVersion"] == rt.api_version else {**obj, "apiVersion": rt.api_version}
