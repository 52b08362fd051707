"""The one part of a kubelet that an API server calls for what is tested here: the logs of a container."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Tls:
    """An API server does not check a kubelet's certificate unless told to, so any will do: its own, say."""

    certificate: Path
    key: Path


class LogServer:
    """`texts` is what each pod, by namespace and name, has written."""

    def __init__(self, tls: Tls) -> None:
        self.texts: dict[tuple[str, str], str] = {}
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
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        text = self.texts.get((request.match_info["namespace"], request.match_info["pod"]))
        if text is None:
            return web.Response(status=404, text="no such container")
        lines = text.splitlines(keepends=True)
        if tail := request.query.get("tailLines"):
            lines = lines[-int(tail) :] if int(tail) else []
        return web.Response(text="".join(lines))
