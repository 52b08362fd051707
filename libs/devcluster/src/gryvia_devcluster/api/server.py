"""The HTTP server: tokens, dispatch, Status bodies for refusals, and the streams.

One handler takes all requests and reads the path itself (aiohttp's low-level server): a router with a hundred patterns
costs more than most requests. Watch streams end when the server stops.

The admin token is taken as a Bearer token or as the first part of the path (`/token/<token>/api/…`). The second is what a
kubeconfig gets: kubectl sends no credentials over plain http, and TLS would cost every request of every service.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Callable

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from gryvia_devcluster.api.bodies import MAX_BODY, read_body
from gryvia_devcluster.api.builtins import BUILTINS
from gryvia_devcluster.api.discovery import Discovery
from gryvia_devcluster.api.openapi import OpenApi
from gryvia_devcluster.api.options import WriteOptions
from gryvia_devcluster.api.paths import Target, parse
from gryvia_devcluster.api.podlogs import LogRequest
from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.api.request import Reply, json_reply
from gryvia_devcluster.api.reviews import answer_review, evict, find_review
from gryvia_devcluster.api.verbs import Verbs
from gryvia_devcluster.api.watching import Watch
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import PodLogs

log = logging.getLogger(__name__)

_BUILTIN_GROUPS = frozenset(rt.group for rt in BUILTINS)
# Of a group that nobody serves: not in the API's own form.
_NOBODY = Reply(b"404 page not found\n", 404, "text/plain; charset=utf-8")
_HEALTH = ("/healthz", "/livez", "/readyz")


class PortTaken(Exception):
    """The address cannot be bound. The message is one sentence for the user."""


class ApiServer:
    def __init__(self, registry: Registry, *, token: str, logs: Callable[[], PodLogs | None] = lambda: None) -> None:
        self._registry = registry
        self._token = token
        self._verbs = Verbs(registry)
        self._discovery = Discovery(registry.catalog)
        self._openapi = OpenApi(registry.catalog)
        self._logs = logs
        self._streams: set[asyncio.Task[object]] = set()
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Listens; returns the port. Raises PortTaken."""
        server = web.Server(self._handle, request_factory=_request, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise PortTaken(
                f"Cannot listen on {host}:{port} ({error.strerror}): stop what uses it or choose another port (0 = any)."
            ) from error
        address: tuple[str, int] = self._runner.addresses[0]
        return address[1]

    async def stop(self) -> None:
        for task in list(self._streams):
            task.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        options = WriteOptions()
        try:
            path = self._authenticate(request)
            answer = await self._route(request, path, options)
        except ApiError as error:
            answer = json_reply(error.status(), error.code)
            options.warnings += error.warnings
        except Exception:  # one request must not take the connection's others with it
            log.exception("request failed", extra={"method": request.method, "path": request.path})
            answer = json_reply(ApiError("InternalError", "the server failed; see its log").status(), 500)
        if isinstance(answer, Watch):
            return await self._stream(request, answer.lines(), "application/json")
        if isinstance(answer, LogRequest):
            return await self._stream(request, answer.chunks(), "text/plain")
        response = web.Response(
            body=answer.body,
            status=answer.code,
            headers={"Content-Type": answer.content_type, "Cache-Control": "no-cache, private"},
        )
        for warning in dict.fromkeys(options.warnings):
            text = warning.replace("\\", "\\\\").replace('"', '\\"')
            response.headers.add("Warning", f'299 - "{text}"')
        return response

    def _authenticate(self, request: web.BaseRequest) -> str:
        """The path of the request proper. Raises ApiError Unauthorized."""
        path = request.path
        if path.startswith("/token/"):
            token, slash, rest = path.removeprefix("/token/").partition("/")
            path = slash + rest
        else:
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            token = token.strip() if scheme.lower() == "bearer" else ""
        if path.startswith(_HEALTH) or path == "/version":
            return path
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            raise ApiError("Unauthorized", "Unauthorized")
        return path

    async def _route(self, request: web.BaseRequest, path: str, options: WriteOptions) -> Reply | Watch | LogRequest:
        target = parse(path)
        if target is None:
            return self._meta(request, path)
        if request.method == "POST" and (review := find_review(target)):
            return json_reply(answer_review(review, await read_body(request)), 201)
        served = self._registry.catalog.find(target.group, target.version, target.plural)
        if served is None:
            if target.group in _BUILTIN_GROUPS:
                raise ApiError("NotFound", "the server could not find the requested resource")
            return _NOBODY
        query = dict(request.query)
        match request.method, bool(target.name):
            case "GET", True if (target.plural, target.subresource) == ("pods", "log") and not target.group:
                return LogRequest.open(self._registry, self._logs(), target, query)
            case (("GET" | "HEAD"), _):
                return self._verbs.read(served, target, request, query)
            case "POST", True if target.subresource or not served.custom:
                return await self._post_subresource(target, request)
            case "POST", _:
                reply, done = await self._verbs.create(served, target, request, query)
            case "PUT", True:
                reply, done = await self._verbs.update(served, target, request, query)
            case "PATCH", True:
                reply, done = await self._verbs.patch(served, target, request, query)
            case "DELETE", _:
                return await self._verbs.delete(served, target, request, query)
            case _:
                raise ApiError("MethodNotAllowed", "the server does not allow this method on the requested resource")
        options.warnings += done.warnings
        return reply

    async def _post_subresource(self, target: Target, request: web.BaseRequest) -> Reply:
        if (target.group, target.plural, target.subresource) == ("", "pods", "eviction"):
            return json_reply(evict(self._registry, target, await read_body(request)), 201)
        if (target.group, target.plural, target.subresource) == ("", "pods", "binding"):
            body = await read_body(request)
            patch = {"spec": {"nodeName": body["target"]["name"]}}
            rt = self._registry.resource("", "pods")
            self._registry.patch(rt, target.namespace, target.name, patch, "application/merge-patch+json")
            return json_reply(
                {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
            )
        raise ApiError("NotFound", "the server could not find the requested resource")

    def _meta(self, request: web.BaseRequest, path: str) -> Reply:
        if path.startswith(_HEALTH):
            return Reply(b"ok", content_type="text/plain")
        if path == "/version":
            return json_reply(VERSION)
        reply = self._openapi.answer(path) or self._discovery.answer(path, request.headers.get("Accept", ""))
        if reply is None:
            raise ApiError("NotFound", "the server could not find the requested resource")
        return reply

    async def _stream(
        self, request: web.BaseRequest, chunks: AsyncIterator[bytes], content_type: str
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": content_type, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        task = asyncio.current_task()
        if task is not None:
            self._streams.add(task)
        try:
            await response.prepare(request)
            async for chunk in chunks:
                await response.write(chunk)
            await response.write_eof()
        except ConnectionError:
            log.debug("client went away", extra={"path": request.path})
        finally:
            if task is not None:
                self._streams.discard(task)
        return response


VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+devcluster",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: object,
    task: asyncio.Task[None],
) -> BaseRequest:
    loop = asyncio.get_running_loop()
    return BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY)  # type: ignore[arg-type]  # the writer's class is private to aiohttp
