"""The verbs on resources: from a URL and a body to a call of the registry, and back to bytes."""

from __future__ import annotations

from typing import Any, get_args

import orjson
from aiohttp import web

from gryvia_devcluster.api import deletion, listing, refusals, scaling
from gryvia_devcluster.api.bodies import read_body, read_object, read_patch
from gryvia_devcluster.api.catalog import Served
from gryvia_devcluster.api.forms import Render, form_of
from gryvia_devcluster.api.options import WriteOptions
from gryvia_devcluster.api.paths import Target
from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.api.request import Reply, delete_options, json_reply, success, write_options
from gryvia_devcluster.api.watching import Watch, open_watch
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store import Entry, Key
from gryvia_devcluster.types import Json, PatchType, ResourceType, Subresource

_NOT_FOUND = "the server could not find the requested resource"


class Verbs:
    """One method per verb. `options.warnings` of a write are returned beside the reply."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def _render(self, rt: ResourceType, request: web.BaseRequest, query: dict[str, str]) -> Render:
        return Render(
            rt,
            form_of(request.headers.get("Accept", "")),
            self._registry.state.clock.now(),
            query.get("includeObject", "Metadata"),
            convert=self._registry.catalog.has_several(rt),
        )

    def read(self, served: Served, target: Target, request: web.BaseRequest, query: dict[str, str]) -> Reply | Watch:
        """GET: one object, its scale, a list, or a watch."""
        rt, store = served.rt, self._registry.store
        render = self._render(rt, request, query)
        namespace = target.namespace if rt.namespaced else None
        if target.name:
            if listing.flag(query, "watch"):
                query["fieldSelector"] = f"metadata.name={target.name}"
                return open_watch(store, served, render, namespace, query)
            if target.subresource != "scale":
                _check_subresource(rt, target)
            entry = self._registry.entry(rt, namespace, target.name)
            if target.subresource == "scale":
                return json_reply(scaling.scale_of(rt, entry.obj))
            return Reply(render.one(entry))
        if listing.flag(query, "watch"):
            return open_watch(store, served, render, namespace, query)
        page = listing.page(store, served, namespace, query)
        return Reply(render.many(page.entries, page.metadata))

    async def create(
        self, served: Served, target: Target, request: web.BaseRequest, query: dict[str, str]
    ) -> tuple[Reply, WriteOptions]:
        if served.rt.namespaced and target.namespace is None:
            raise ApiError("MethodNotAllowed", "the server does not allow this method on the requested resource")
        options = write_options(request, query)
        body, options.duplicates = await read_object(request, served.rt)
        obj = self._registry.create(served.rt, target.namespace, body, options=options)
        return self._written(served.rt, obj, request, query, 201), options

    async def update(
        self, served: Served, target: Target, request: web.BaseRequest, query: dict[str, str]
    ) -> tuple[Reply, WriteOptions]:
        rt, options = served.rt, write_options(request, query)
        body, options.duplicates = (
            await read_object(request, rt) if target.subresource != "scale" else (await read_body(request), [])
        )
        subresource = "" if target.subresource == "finalize" else _check_subresource(rt, target)
        named = ((body or {}).get("metadata") or {}).get("name") if isinstance(body, dict) else None
        if named and named != target.name:
            raise ApiError(
                "BadRequest", f"the name of the object ({named}) does not match the name on the URL ({target.name})"
            )
        obj = self._registry.update(rt, target.namespace, target.name, body, subresource=subresource, options=options)
        if subresource == "scale":
            return json_reply(scaling.scale_of(rt, obj)), options
        return self._written(rt, obj, request, query, 200), options

    async def patch(
        self, served: Served, target: Target, request: web.BaseRequest, query: dict[str, str]
    ) -> tuple[Reply, WriteOptions]:
        rt, options = served.rt, write_options(request, query)
        kind: Any = request.headers.get("Content-Type", "").split(";")[0].strip()
        accepted = [type for type in get_args(PatchType) if not served.custom or "strategic" not in type]
        if kind not in accepted:
            raise ApiError(
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: "
                + ", ".join(accepted),
            )
        body = await read_patch(request, kind)
        subresource = _check_subresource(rt, target)
        existed = self._registry.store.get(rt.group_resource, _key(rt, target)) is not None
        obj = self._registry.patch(
            rt, target.namespace, target.name, body, kind, subresource=subresource, options=options
        )
        if subresource == "scale":
            return json_reply(scaling.scale_of(rt, obj)), options
        return self._written(rt, obj, request, query, 200 if existed else 201), options

    async def delete(self, served: Served, target: Target, request: web.BaseRequest, query: dict[str, str]) -> Reply:
        rt, options = served.rt, delete_options(await read_body(request), query)
        if not target.name:
            return self._delete_collection(served, target, request, query, options)
        obj = self._delete(rt, target.namespace, target.name, options, query)
        if (
            deletion.is_free(rt, obj)
            or self._registry.store.get(rt.group_resource, _key(rt, target)) is None
            or rt.kind == "CustomResourceDefinition"
        ):
            return success(rt.plural, rt.group, target.name, obj["metadata"]["uid"])
        return Reply(orjson.dumps(obj))

    def _delete(self, rt: ResourceType, namespace: str | None, name: str, options: Json, query: dict[str, str]) -> Json:
        conditions = options.get("preconditions") or {}
        return self._registry.delete(
            rt,
            namespace,
            name,
            propagation=options["propagationPolicy"],
            uid=conditions.get("uid"),
            resource_version=conditions.get("resourceVersion"),
            grace_seconds=options.get("gracePeriodSeconds"),
            dry_run=bool(options.get("dryRun") or query.get("dryRun")),
        )

    def _delete_collection(
        self, served: Served, target: Target, request: web.BaseRequest, query: dict[str, str], options: Json
    ) -> Reply:
        rt = served.rt
        page = listing.page(self._registry.store, served, target.namespace if rt.namespaced else None, query)
        options = {**options, "preconditions": None}
        for entry in page.entries:
            self._delete(rt, entry.key.namespace or None, entry.key.name, options, query)
        return Reply(self._render(rt, request, query).many(page.entries, page.metadata))

    def _written(
        self, rt: ResourceType, obj: Json, request: web.BaseRequest, query: dict[str, str], code: int
    ) -> Reply:
        """The object as it was written; its stored bytes when it is the stored one (they will serve the watchers)."""
        meta = obj["metadata"]
        key = Key(meta.get("namespace") or "", meta["name"])
        entry = self._registry.store.get(rt.group_resource, key)
        if entry is None or entry.obj is not obj:
            entry = Entry(key, 0, obj)
        return Reply(self._render(rt, request, query).one(entry), code)


def _key(rt: ResourceType, target: Target) -> Key:
    return Key((target.namespace or "") if rt.namespaced else "", target.name)


def _check_subresource(rt: ResourceType, target: Target) -> Subresource:
    """Raises ApiError NotFound for a subresource that the type has not."""
    match target.subresource:
        case "":
            return ""
        case "status" if "status" in rt.subresources:
            return "status"
        case "scale" if "scale" in rt.subresources:
            return "scale"
        case _ if rt.schema is not None:
            raise refusals.not_found(rt, target.name)
        case _:
            raise ApiError("NotFound", _NOT_FOUND)
