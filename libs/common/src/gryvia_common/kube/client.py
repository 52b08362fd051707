"""The Kubernetes API as the services use it: a few verbs on JSON, and the LIST pages and WATCH lines the bridge's
reflector is made of.

Every method raises Transient, Conflict, Gone or Terminal and nothing else (besides CancelledError). After a Transient
the outcome of a write is unknown. No list is ever asked for with resourceVersion=0: a lagging server would answer with
the past.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import orjson

from gryvia_common.clock import Clock
from gryvia_common.errors import Transient
from gryvia_common.kube.answers import Expired, json_of
from gryvia_common.kube.config import KubeSettings, find_access
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import PODS, Resource
from gryvia_common.kube.transport import READY, Observe, Request, Transport

__all__ = ["Expired", "Kube", "KubeSettings", "ListPage"]

Objects = list[Json]  # inside Kube, `list` is a verb
Lines = list[bytes]

PAGE = 500
LIST_TIMEOUT = 60.0
MAX_LINE = 32 * 2**20
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list; all pages of one list are of one `version`. `following` is empty on the last page."""

    items: list[Json]
    version: int
    following: str


class Kube:
    """A client of one API server, made by `connect` (which sends nothing yet)."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @classmethod
    async def connect(
        cls, settings: KubeSettings, *, user_agent: str, clock: Clock, observe: Observe | None = None
    ) -> Kube:
        """Terminal when the configuration cannot be used. `observe(verb, plural, code, seconds)` is called after each
        request, code 0 when there was no answer."""
        access = await find_access(settings, clock)
        return cls(Transport(access, user_agent=user_agent, clock=clock, observe=observe))

    async def close(self) -> None:
        await self._transport.close()

    async def ping(self) -> None:
        """Returns when the API server says that it is ready; Transient when it does not answer, or says that it is not."""
        await self._transport.call(READY)

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        """Gone when it is not there."""
        return await self._json(
            Request("get", resource, "GET", resource.path(namespace, name), _key(namespace, name), repeatable=True)
        )

    async def list(
        self, resource: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> Objects:
        """Every page, of one moment; begun again (at most three times) when the server forgets that moment half way."""
        for _ in range(3):
            try:
                return await self._list(resource, namespace, labels, fields)
            except Expired as error:
                expired = error
        raise Transient(f"list {resource.plural}: the list expired between its pages three times over") from expired

    async def list_page(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        following: str = "",
        limit: int = PAGE,
        metadata_only: bool = False,
    ) -> ListPage:
        """Expired when the token `following` is too old: begin the list anew. Gone when the type is not served."""
        params = {"limit": str(limit)}
        params |= {
            key: value
            for key, value in (("labelSelector", labels), ("fieldSelector", fields), ("continue", following))
            if value
        }
        request = Request(
            "list",
            resource,
            "GET",
            resource.path(namespace),
            namespace or "",
            params,
            accept=_METADATA_LIST if metadata_only else "application/json",
            repeatable=True,
            timeout=LIST_TIMEOUT,
            collection=True,
        )
        return _page(request, await self._json(request), metadata_only)

    async def watch(
        self,
        resource: Resource,
        version: int,
        *,
        labels: str = "",
        metadata_only: bool = False,
        timeout_seconds: int = 300,
        idle: float = 55.0,
    ) -> AsyncGenerator[Lines, None]:
        """The complete lines of a watch from `version` on, as they come in; a half line at the end is not one. Ends
        when the server ends it; Silent when nothing (no bookmark even) came for `idle` seconds; Expired for HTTP 410
        (a 410 within the stream is a line). What is in the lines is the reader's business."""
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(version),
            "timeoutSeconds": str(timeout_seconds),
        }
        if labels:
            params["labelSelector"] = labels
        accept = _METADATA if metadata_only else "application/json"
        request = Request("watch", resource, "GET", resource.path(), "", params, accept=accept, collection=True)
        async with self._transport.stream(request, idle=idle) as chunks:
            half: Lines = []
            size = 0
            async for chunk in chunks:
                *lines, rest = chunk.split(b"\n")
                if lines:
                    lines[0] = b"".join([*half, lines[0]])
                    half, size = [], 0
                    yield [line for line in lines if line]
                if rest:
                    half.append(rest)
                    size += len(rest)
                if size > MAX_LINE:
                    raise Transient(f"{request}: a line longer than {MAX_LINE} bytes")

    async def create(self, resource: Resource, obj: Json, *, manager: str = "") -> Json:
        """Conflict when one of that name exists."""
        namespace, name = _names(obj)
        request = Request(
            "create",
            resource,
            "POST",
            resource.path(namespace),
            _key(namespace, name),
            {"fieldManager": manager} if manager else {},
            orjson.dumps(obj),
        )
        return await self._json(request)

    async def apply(self, resource: Resource, obj: Json, *, manager: str, force: bool = True) -> Json:
        """Server-side apply: creates it, or makes it so. Conflict only without `force`."""
        namespace, name = _names(obj)
        request = Request(
            "apply",
            resource,
            "PATCH",
            resource.path(namespace, name),
            _key(namespace, name),
            {"fieldManager": manager, "force": "true" if force else "false"},
            orjson.dumps({"apiVersion": resource.api_version, "kind": resource.kind, **obj}),
            "application/apply-patch+yaml",
            repeatable=True,
        )
        return await self._json(request)

    async def patch(
        self, resource: Resource, namespace: str, name: str, body: Json, *, subresource: str = "", manager: str = ""
    ) -> Json:
        """JSON merge patch. A resourceVersion in the body's metadata makes it a compare-and-set: Conflict when it is
        older."""
        request = Request(
            "patch",
            resource,
            "PATCH",
            resource.path(namespace, name, subresource),
            _key(namespace, name),
            {"fieldManager": manager} if manager else {},
            orjson.dumps(body),
            "application/merge-patch+json",
        )
        return await self._json(request)

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        version: str = "",
        propagation: str = "Background",
    ) -> None:
        """Gone when it is not there, Conflict when the one that is there has another uid or resourceVersion."""
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if uid or version:
            conditions = {"uid": uid, "resourceVersion": version}
            options["preconditions"] = {key: value for key, value in conditions.items() if value}
        await self._transport.call(
            Request(
                "delete",
                resource,
                "DELETE",
                resource.path(namespace, name),
                _key(namespace, name),
                body=orjson.dumps(options),
                repeatable=True,
            )
        )

    async def logs(
        self,
        namespace: str,
        pod: str,
        *,
        container: str = "",
        since_time: str = "",
        tail_lines: int | None = None,
        limit_bytes: int | None = None,
        previous: bool = False,
        timestamps: bool = False,
    ) -> bytes:
        """What is there now. Transient while the container has not started, Gone when there is no (previous) container
        or pod."""
        params = {
            "container": container,
            "sinceTime": since_time,
            "tailLines": "" if tail_lines is None else str(tail_lines),
            "limitBytes": "" if limit_bytes is None else str(limit_bytes),
            "previous": "true" if previous else "",
            "timestamps": "true" if timestamps else "",
        }
        return await self._transport.call(
            Request(
                "logs",
                PODS,
                "GET",
                PODS.path(namespace, pod, "log"),
                _key(namespace, pod),
                {key: value for key, value in params.items() if value},
                accept="*/*",
                repeatable=True,
            )
        )

    async def follow_logs(
        self, namespace: str, pod: str, *, container: str = "", idle: float = 300.0
    ) -> AsyncGenerator[bytes, None]:
        """What is there and what comes, in pieces as they come; ends when the container has ended. Raises as `logs` does, and
        Silent when nothing came for `idle` seconds."""
        params = {"follow": "true"} | ({"container": container} if container else {})
        path = PODS.path(namespace, pod, "log")
        request = Request("logs", PODS, "GET", path, _key(namespace, pod), params, accept="*/*")
        async with self._transport.stream(request, idle=idle) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _json(self, request: Request) -> Json:
        return json_of(str(request), await self._transport.call(request))

    async def _list(self, resource: Resource, namespace: str | None, labels: str, fields: str) -> Objects:
        page = await self.list_page(resource, namespace, labels=labels, fields=fields)
        items = page.items
        while page.following:
            page = await self.list_page(resource, namespace, labels=labels, fields=fields, following=page.following)
            items += page.items
        return items


def _page(request: Request, answer: Json, metadata_only: bool) -> ListPage:
    """Only a list of the right kind with a version is one: an error page is no empty list."""
    resource = request.resource
    kind = "PartialObjectMetadataList" if metadata_only else f"{resource.kind}List"
    meta = metadata(answer)
    items = answer.get("items")
    version = str(meta.get("resourceVersion") or "")
    if answer.get("kind") != kind or not isinstance(items, list | None) or not version.isdecimal():
        raise Transient(f"{request}: the answer is no {kind} but a {answer.get('kind')!r}")
    for item in items or ():
        item["apiVersion"], item["kind"] = resource.api_version, resource.kind
    return ListPage(items or [], int(version), str(meta.get("continue") or ""))


def _names(obj: Json) -> tuple[str, str]:
    meta = metadata(obj)
    return meta.get("namespace") or "", meta.get("name") or ""


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
