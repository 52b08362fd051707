"""An HTTP proxy in front of an API server that does what a script says, and keeps the record that no service can embellish.

One proxy a client, so the audit knows who asked. A Fault is used up by the first request it fits; `mode` holds for all of
them until it is changed.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import aiohttp
import orjson
from aiohttp import web

from gryvia_common.kube.children import OWNER
from gryvia_common.kube.objects import annotations_of

Kind = Literal["reset", "half-open", "hang", "gone", "busy", "error", "html", "cut", "drip", "delay", "lost-answer"]
KINDS: tuple[Kind, ...] = (
    "reset", "half-open", "hang", "gone", "busy", "error", "html", "cut", "drip", "delay", "lost-answer",
)  # fmt: skip
HOLD = 3.0
HOP = frozenset({"connection", "transfer-encoding", "content-length", "host", "keep-alive"})


@dataclass(frozen=True, slots=True)
class Fault:
    """`fits` looks at the request; the default fits any."""

    kind: Kind
    fits: Callable[[Request], bool] = lambda request: True
    seconds: float = HOLD


@dataclass(slots=True)
class Request:
    """One line of the audit. `subject`: the Gryvia object that the write is about (`<plural>/<name>`, the owner of a child)."""

    began: float
    method: str
    path: str
    watch: bool
    subject: str = ""
    ended: float = 0.0
    code: int = 0
    fault: str = ""

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def leases(self) -> bool:
        return "/leases" in self.path or "kube-system" in self.path


@dataclass
class ApiProxy:
    """`async with ApiProxy(target)`; `url` is the place to go instead."""

    target: str
    name: str = ""
    faults: list[Fault] = field(default_factory=list)
    audit: list[Request] = field(default_factory=list)
    mode: Kind | None = None
    url: str = ""
    tls: ssl.SSLContext | None = None

    async def __aenter__(self) -> ApiProxy:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self.tls or True),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        self._runner = web.ServerRunner(
            web.Server(self._handle, access_log=None, handler_cancellation=True), shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    def kubeconfig(self, original: Path, path: Path) -> Path:
        """The same with our address in it."""
        path.write_text(original.read_text().replace(self.target, self.url))
        path.chmod(0o600)
        return path

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        line = Request(time.monotonic(), request.method, request.path, "watch=1" in request.query_string)
        line.subject = _subject(request.path, body) if line.writes else ""
        self.audit.append(line)
        if line.path.endswith("/log"):
            return web.Response(text="")  # the pods are played: they have no log
        kind = self.mode or self._next(line)
        line.fault = kind or ""
        try:
            if kind is not None and kind not in ("lost-answer", "cut", "drip", "delay"):
                return await _broken(request, kind)
            if kind == "delay":
                await asyncio.sleep(HOLD)
            return await self._forward(request, body, line, kind)
        finally:
            line.ended = time.monotonic()

    def _next(self, line: Request) -> Kind | None:
        for number, fault in enumerate(self.faults):
            if fault.fits(line):
                del self.faults[number]
                return fault.kind
        return None

    async def _forward(
        self, request: web.BaseRequest, body: bytes, line: Request, kind: Kind | None
    ) -> web.StreamResponse:
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOP}
        url = f"{self.target}{request.raw_path}" if hasattr(request, "raw_path") else f"{self.target}{request.path_qs}"
        try:
            async with self._session.request(request.method, url, data=body or None, headers=headers) as answer:
                line.code = answer.status
                if kind == "lost-answer":
                    await answer.read()
                    return await _broken(request, "reset")
                response = web.StreamResponse(status=answer.status)
                response.headers.update({k: v for k, v in answer.headers.items() if k.lower() not in HOP})
                await response.prepare(request)  # type: ignore[arg-type]
                async for chunk in answer.content.iter_any():
                    if kind == "cut":
                        await response.write(chunk[: max(len(chunk) // 2, 1)])
                        return await _broken(request, "reset")
                    if kind == "drip":
                        for place in range(0, len(chunk), max(len(chunk) // 20, 1)):
                            await response.write(chunk[place : place + max(len(chunk) // 20, 1)])
                            await asyncio.sleep(0.02)
                    else:
                        await response.write(chunk)
                await response.write_eof()
                return response
        except aiohttp.ClientError:
            return await _broken(request, "reset")


async def _broken(request: web.BaseRequest, kind: Kind) -> web.StreamResponse:
    if kind in ("hang", "half-open"):
        # Nothing comes, and nobody says that the connection is dead.
        await asyncio.sleep(3600 if kind == "half-open" else HOLD)
        kind = "reset"
    if kind == "reset":
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)
    if kind == "html":
        return web.Response(status=502, text="<html><h1>502 Bad Gateway</h1></html>", content_type="text/html")
    code, reason, headers = {
        "gone": (410, "Expired", {}),
        "busy": (429, "TooManyRequests", {"Retry-After": "1"}),
        "error": (500, "InternalError", {}),
    }[kind]
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return web.json_response({**status, "message": f"scripted {reason}"}, status=code, headers=headers)


def _subject(path: str, body: bytes) -> str:
    plural, _, name = path.removesuffix("/status").rpartition("/")
    kind = plural.rpartition("/")[2]
    try:
        sent = orjson.loads(body) if body else {}
    except orjson.JSONDecodeError:
        sent = {}
    owner = annotations_of(sent).get(OWNER, "") if isinstance(sent, dict) else ""
    if owner:
        plural, _, name, _ = owner.split("/")
        return f"{plural}/{name}"
    return f"{kind}/{name}" if kind.startswith("gryvia") else ""
