"""The one part of a kubelet that an API server calls for what is tested here: the logs of a container."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Tls:
    """An API server does not check a kubelet's certificate unless told to, so any will do: its own, say."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Written:
    """What a container has written, one line a microsecond from `since` on."""

    since: datetime
    text: str

    def lines(self) -> list[tuple[str, str]]:
        """Each line with its time, as the container runtime notes it down."""
        return [
            ((self.since + timedelta(microseconds=number)).strftime("%Y-%m-%dT%H:%M:%S.%f000Z"), line)
            for number, line in enumerate(self.text.splitlines(keepends=True))
        ]


class LogServer:
    """`written` is what each pod, by namespace and name, has said."""

    def __init__(self, tls: Tls) -> None:
        self.written: dict[tuple[str, str], Written] = {}
        self._tls = tls

    async def start(self) -> int:
        """The port."""
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._answer)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._tls.certificate, self._tls.key)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port: int = self._runner.addresses[0][1]
        return port

    async def stop(self) -> None:
        # An API server keeps its connections, and takes its time to say goodbye over TLS.
        for connection in self._runner.server.connections if self._runner.server else ():
            if connection.transport is not None:
                connection.transport.abort()
        await self._runner.cleanup()
        await asyncio.sleep(0)

    async def _answer(self, request: web.Request) -> web.Response:
        """PodLogOptions but for following; times are compared as text, all of one form."""
        found = self.written.get((request.match_info["namespace"], request.match_info["pod"]))
        if found is None or request.query.get("previous") == "true":
            return web.Response(status=404, text="no such container")
        lines = found.lines()
        if since := request.query.get("sinceTime"):
            lines = [(time, line) for time, line in lines if time[:19] >= since[:19]]
        if tail := request.query.get("tailLines"):
            lines = lines[-int(tail) :] if int(tail) else []
        stamped = request.query.get("timestamps") == "true"
        text = "".join(f"{time} {line}" if stamped else line for time, line in lines)
        limit = int(request.query.get("limitBytes") or len(text.encode()))
        return web.Response(body=text.encode()[:limit], content_type="text/plain")
