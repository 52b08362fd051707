"""A bare HTTP client of an API server, real or devcluster: what was sent is what goes out, what came back is what is seen.

The platform's own client (gryvia_common.kube) hides refusals behind four exceptions and sends only what the services need;
here the answer itself is under test.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

Json = dict[str, Any]

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
_MAX_LINE = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Answer:
    """`warnings` are the texts of the Warning headers."""

    code: int
    body: Any
    warnings: tuple[str, ...] = ()


class Refused(Exception):
    """The answer of a call that had to succeed."""

    def __init__(self, method: str, path: str, answer: Answer) -> None:
        message = answer.body.get("message") if isinstance(answer.body, dict) else answer.body
        super().__init__(f"{method} {path}: {answer.code} {message}")
        self.answer = answer


class Events:
    """The lines of a watch, each parsed. A line longer than 32 MiB is an error."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self, *, seconds: float = 10.0) -> Json | None:
        """None at the end of the stream; TimeoutError when nothing came."""
        async with asyncio.timeout(seconds):
            line = await self._response.content.readline()
        return json.loads(line) if line else None


class Http:
    """`async with Http(url, token, ca) as api: await api.ok("GET", "/api/v1/pods")`."""

    def __init__(self, url: str, token: str, ca: Path | None = None, *, user_agent: str = "realcluster") -> None:
        self.url = url
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": user_agent}
        self._tls = ssl.create_default_context(cafile=str(ca)) if ca else True

    async def __aenter__(self) -> Http:
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=0),
            read_bufsize=_MAX_LINE,
            timeout=aiohttp.ClientTimeout(total=60),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
        await _let_close()

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Whatever the server says. A body of bytes goes out as it is."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"Content-Type": content_type, "Accept": accept, **(headers or {})}
        async with self._session.request(method, self.url + path, data=data, headers=sent) as response:
            raw = await response.read()
            parsed = json.loads(raw) if raw and response.content_type == "application/json" else raw.decode()
            return Answer(response.status, parsed, tuple(response.headers.getall("Warning", [])))

    async def ok(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The body; Refused when the call failed."""
        answer = await self(method, path, body, **options)
        if answer.code >= 300:
            raise Refused(method, path, answer)
        return answer.body

    @asynccontextmanager
    async def watch(self, path: str, *, accept: str = "application/json") -> AsyncIterator[Events]:
        """An open watch; Refused when the server does not begin one."""
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(self.url + path, headers={"Accept": accept}, timeout=timeout) as response:
            if response.status != 200:
                raise Refused("GET", path, Answer(response.status, await response.text()))
            try:
                yield Events(response)
            finally:
                # Over TLS a plain close waits for the server's farewell, which a watching server has no time for.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()
                await _let_close()


async def _let_close() -> None:
    """An aborted connection closes its socket some turns of the loop later."""
    for _ in range(4):
        await asyncio.sleep(0)
