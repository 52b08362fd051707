"""An API server for tests that does what it is told: a small honest core (versions, lists in pages, watches, a horizon), and in
front of it a script of faults, each used up by one request."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from gryvia_bridge.bridge import Bridge
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.subjects import objects_filter
from gryvia_common.clock import SystemClock
from gryvia_common.errors import GryviaError
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import Access
from gryvia_common.kube.credentials import Fixed
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import GROUP, VERSION, Resource
from gryvia_common.kube.transport import Transport

AIJOBS = Resource(GROUP, VERSION, "gryviaaijobs", "GryviaAIJob")

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]
Event = tuple[int, str, Json]


class FastClock(SystemClock):
    """Time that runs `factor` times as fast, so that backoffs of seconds take milliseconds."""

    def __init__(self, factor: float = 50.0) -> None:
        self._factor = factor

    def monotonic(self) -> float:
        return super().monotonic() * self._factor

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._factor)


class ScriptedApi:
    """`list_faults` and `watch_faults` are answered first, one a request; `seen` are the requests as (verb, plural, query)."""

    def __init__(self) -> None:
        self.version = 100
        self.cluster_uid = "cluster-1"
        self.objects: dict[str, dict[tuple[str, str], Json]] = {}
        self.history: dict[str, list[Event]] = {}
        self.horizon: dict[str, int] = {}
        self.served: set[str] | None = None
        self.list_faults: deque[Fault] = deque()
        self.watch_faults: deque[Fault] = deque()
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.accepted: list[str] = []
        self.page = 500
        self.url = ""
        self._uids = 0
        self._changed = asyncio.Condition()
        self._watching: dict[int, web.Request] = {}

    def count(self, verb: str, plural: str = "") -> int:
        return sum(v == verb and plural in ("", p) for v, p, _ in self.seen)

    async def put(self, resource: Resource, name: str, namespace: str = "ns", **fields: Any) -> Json:
        """Creates or changes one; `fields` are merged over the metadata and spec it has."""
        store = self.objects.setdefault(resource.plural, {})
        old = store.get((namespace, name))
        self.version += 1
        meta = {"name": name, "namespace": namespace, "uid": old["metadata"]["uid"] if old else self._uid()}
        meta |= fields.pop("metadata", {})
        obj = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": meta | {"resourceVersion": str(self.version), "managedFields": [{"manager": "x"}]},
            **fields,
        }
        store[(namespace, name)] = obj
        await self._record(resource.plural, "MODIFIED" if old else "ADDED", obj)
        return obj

    async def delete(self, resource: Resource, name: str, namespace: str = "ns") -> None:
        obj = self.objects[resource.plural].pop((namespace, name))
        self.version += 1
        last = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        await self._record(resource.plural, "DELETED", last)

    def forget(self) -> None:
        """Compacts: a watch from before now is answered with 410."""
        for plural in self.history:
            self.horizon[plural] = self.version

    async def drop_watches(self) -> None:
        """Resets the connection of every open watch."""
        for request in list(self._watching.values()):
            _abort(request)
        async with self._changed:
            self._changed.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        if "namespaces" in parts and parts[-1] == "kube-system":
            return web.json_response(
                {"kind": "Namespace", "metadata": {"name": "kube-system", "uid": self.cluster_uid}}
            )
        plural = parts[-1]
        verb = "watch" if "watch" in request.query else "list"
        self.seen.append((verb, plural, dict(request.query)))
        faults = self.watch_faults if verb == "watch" else self.list_faults
        if faults:
            return await faults.popleft()(request)
        if self.served is not None and plural not in self.served:
            return web.Response(status=404, text="404 page not found\n")
        self.accepted.append(request.headers["Accept"])
        return await (self.watch(request, plural) if verb == "watch" else self.list(request, plural))

    async def list(self, request: web.Request, plural: str) -> web.StreamResponse:
        """A continue token is `<version>:<offset>:<what the list was>`, so that a list stays of one moment."""
        token = request.query.get("continue")
        if token:
            snapshot = json.loads(token)
            version, items = snapshot["version"], snapshot["items"]
        else:
            version, items = self.version, list(self.objects.get(plural, {}).values())
        limit = min(int(request.query.get("limit", 500)), self.page)
        meta: Json = {"resourceVersion": str(version)}
        if len(items) > limit:
            meta["continue"] = json.dumps({"version": version, "items": items[limit:]})
        return web.json_response({"kind": list_kind(plural), "metadata": meta, "items": items[:limit]})

    async def watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        if since < self.horizon.get(plural, 0):
            return status(410, "Expired", "too old resource version")
        if since > self.version:
            return status(504, "Timeout", "Too large resource version")
        response = await begin_stream(request)
        self._watching[id(request)] = request
        try:
            while True:
                events = [event for event in self.history.get(plural, []) if event[0] > since]
                if events:
                    since = events[-1][0]
                    await response.write(b"".join(line(kind, obj) for _, kind, obj in events))
                if request.transport is None or request.transport.is_closing():
                    return response
                async with self._changed:
                    if not any(event[0] > since for event in self.history.get(plural, [])):
                        await self._changed.wait()
        finally:
            del self._watching[id(request)]

    async def _record(self, plural: str, kind: str, obj: Json) -> None:
        self.history.setdefault(plural, []).append((self.version, kind, obj))
        async with self._changed:
            self._changed.notify_all()

    def _uid(self) -> str:
        self._uids += 1
        return f"uid-{self._uids}"


def list_kind(plural: str) -> str:
    kinds = {"pods": "Pod", "jobs": "Job", "secrets": "Secret", "gryviaaijobs": "GryviaAIJob"}
    return f"{kinds[plural]}List"


def line(kind: str, obj: Json) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def status(code: int, reason: str, message: str, **headers: str) -> web.Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return web.json_response(body, status=code, headers=headers)


async def begin_stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    return response


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def answers(response: Callable[[], web.StreamResponse]) -> Fault:
    """A fault that is a plain answer."""

    async def fault(request: web.Request) -> web.StreamResponse:
        return response()

    return fault


def sends(data: bytes, *, then: str = "close") -> Fault:
    """A stream of `data`, then the end of it: `close` (in order), `reset` (the connection breaks), or `hang` (nothing any more)."""

    async def fault(request: web.Request) -> web.StreamResponse:
        response = await begin_stream(request)
        if data:
            await response.write(data)
        if then == "reset":
            _abort(request)
        elif then == "hang":
            await asyncio.Event().wait()
        return response

    return fault


async def reset(request: web.Request) -> web.StreamResponse:
    """The connection breaks before a byte of an answer."""
    _abort(request)
    return web.Response()


@asynccontextmanager
async def serving(api: ScriptedApi) -> AsyncIterator[str]:
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", api.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield api.url
    finally:
        await runner.cleanup()


@asynccontextmanager
async def client(url: str, token: str = "") -> AsyncIterator[Kube]:
    credentials = Fixed(f"Bearer {token}") if token else Fixed()
    kube = Kube(Transport(Access(url, credentials), user_agent="test", clock=SystemClock()))
    try:
        yield kube
    finally:
        await kube.close()


async def held(bus: Bus, plural: str = "gryviaaijobs") -> dict[str, tuple[str, int, str]]:
    """name -> (uid, version, op) of what the stream holds."""
    return {
        stored.subject.rpartition(".")[2]: (stored.uid, stored.version, stored.op)
        async for stored in bus.stored_headers(objects_filter(plural))
    }


def expected(api: ScriptedApi, plural: str = "gryviaaijobs") -> dict[str, tuple[str, int, str]]:
    """What the stream must hold of living objects."""
    return {
        name: (obj["metadata"]["uid"], int(obj["metadata"]["resourceVersion"]), "applied")
        for (_, name), obj in api.objects.get(plural, {}).items()
    }


async def living(bus: Bus) -> dict[str, tuple[str, int, str]]:
    return {name: entry for name, entry in (await held(bus)).items() if entry[2] == "applied"}


def published(bridge: Bridge) -> float:
    """How many messages it has stored."""
    return sum(
        sample.value
        for family in bridge.metrics.published.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    )


async def settle(bus: Bus, api: ScriptedApi, within: float = 10.0) -> None:
    async def same() -> bool:
        try:
            return await living(bus) == expected(api)
        except GryviaError:
            return False  # NATS or the stream is away at the moment

    await eventually(same, within)


async def eventually(check: Callable[[], Awaitable[bool]], within: float = 10.0) -> None:
    """Waits until `check` holds; a TimeoutError is the failure."""
    async with asyncio.timeout(within):
        while not await check():
            await asyncio.sleep(0.01)
