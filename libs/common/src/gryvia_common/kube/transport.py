"""HTTP to the API server: two pools of connections, a limit of time on everything, and one safe repetition.

The API server closes idle and over-used connections; a request that meets such a connection is sent once more when
sending it twice cannot do harm (`repeatable`). A 401 makes the credentials fresh and is tried once more. Watches have a
pool of their own, so that they never take a connection from a call. Every failure of the network is Transient here.

A denial ("User … cannot …") is believed only of a server that says it is ready, and only the second time: one that has just come
up does not know the roles yet and denies everything for a moment. Taken at its word it would end what waits for nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from gryvia_common.clock import Clock
from gryvia_common.errors import Transient
from gryvia_common.kube.answers import Silent, raise_for
from gryvia_common.kube.config import Access
from gryvia_common.kube.resources import Resource

Observe = Callable[[str, str, int, float], None]

CONNECT_TIMEOUT = 5.0
ANSWER_TIMEOUT = 15.0
CALL_CONNECTIONS = 64
# A server that does not tell us whether it is ready (that, too, takes a role) is believed after so many tries.
READY_TRIES, READY_PAUSE = 6, 0.5
_DENIAL = b'\\" cannot '
_DROPPED = (aiohttp.ServerDisconnectedError, ConnectionResetError, BrokenPipeError)
_NETWORK = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(frozen=True, slots=True)
class Request:
    """`verb` and `resource` name it in metrics and messages; `what` is what it is about, for messages."""

    verb: str
    resource: Resource
    method: str
    path: str
    what: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    repeatable: bool = False
    timeout: float = 30.0
    collection: bool = False

    def __str__(self) -> str:
        return f"{self.verb} {self.resource.plural} {self.what}".rstrip()


READY = Request(
    "ping", Resource("", "", "readyz", "Status", namespaced=False), "GET", "/readyz", "", accept="*/*", timeout=5.0
)


class Transport:
    """Belongs to one event loop; `close` ends every connection."""

    def __init__(self, access: Access, *, user_agent: str, clock: Clock, observe: Observe | None = None) -> None:
        self._access = access
        self._clock = clock
        self._observe = observe
        headers = {"User-Agent": user_agent, "Accept-Encoding": "identity"}
        self._calls = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CALL_CONNECTIONS), headers=headers)
        self._watches = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), headers=headers, read_bufsize=2**18
        )

    async def close(self) -> None:
        await self._calls.close()
        await self._watches.close()

    async def call(self, request: Request) -> bytes:
        """The body of a good answer. Raises the platform's errors only."""
        started = self._clock.monotonic()
        code = 0
        try:
            code, headers, body = await self._believed(request)
        finally:
            if self._observe:
                self._observe(request.verb, request.resource.plural, code, self._clock.monotonic() - started)
        if code >= 300:
            raise_for(str(request), code, headers, body, collection=request.collection)
        return body

    @asynccontextmanager
    async def stream(self, request: Request, *, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The chunks of a long answer, after its head was found good. Silent when nothing comes for `idle` seconds,
        Transient when the connection breaks; the iterator simply ends when the server ends the answer."""
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT, sock_read=idle)
        started = self._clock.monotonic()
        code = 0
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                response = await self._open(self._watches, request, timeout)
            code = response.status
        except _NETWORK as error:
            raise Transient(f"{request}: {_describe(error)}") from error
        finally:
            if self._observe:
                self._observe(request.verb, request.resource.plural, code, self._clock.monotonic() - started)
        try:
            await self._expect_good(request, response)
            yield _chunks(request, response)
        finally:
            response.close()

    async def _expect_good(self, request: Request, response: aiohttp.ClientResponse) -> None:
        if response.status >= 300:
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT):
                    body = await response.read()
            except _NETWORK as error:
                raise Transient(f"{request}: HTTP {response.status}, and {_describe(error)}") from error
            if response.status == 401:
                self._access.credentials.renew()
            raise_for(str(request), response.status, response.headers, body, collection=request.collection)
        if request.accept != "*/*" and not response.content_type.startswith("application/json"):
            raise Transient(f"{request}: the answer is {response.content_type}, not JSON: no API server answered")

    async def _believed(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        answer = await self._sent(request)
        for _ in range(0 if request is READY else READY_TRIES):
            if answer[0] != 403 or _DENIAL not in answer[2]:
                break
            code, *_ = await self._sent(READY)
            if code >= 500:
                raise Transient(f"{request}: denied by an API server that is not ready")
            if code != 403:
                return await self._sent(request)
            await self._clock.sleep(READY_PAUSE)
            answer = await self._sent(request)
        return answer

    async def _sent(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        renewed = repeated = False
        while True:
            try:
                code, headers, body = await self._exchange(request)
            except _DROPPED as error:
                if request.repeatable and not repeated:
                    repeated = True
                    continue
                raise Transient(f"{request}: {_describe(error)}") from error
            except _NETWORK as error:
                raise Transient(f"{request}: {_describe(error)}") from error
            if code == 401 and not renewed:
                renewed = True
                self._access.credentials.renew()
                continue
            return code, headers, body

    async def _exchange(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        timeout = aiohttp.ClientTimeout(total=request.timeout, sock_connect=CONNECT_TIMEOUT)
        async with await self._open(self._calls, request, timeout) as response:
            return response.status, response.headers, await response.read()

    async def _open(
        self, session: aiohttp.ClientSession, request: Request, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": request.accept}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        authorization = await self._access.credentials.header()
        if authorization:
            headers["Authorization"] = authorization
        return await session.request(
            request.method,
            URL(self._access.server + request.path, encoded=True),
            params=request.params,
            data=request.body,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            ssl=self._access.tls if self._access.tls is not None else True,
            server_hostname=self._access.hostname,
            proxy=self._access.proxy,
        )


async def _chunks(request: Request, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except TimeoutError as error:
        raise Silent(f"{request}: silent for too long") from error
    except _NETWORK as error:
        raise Transient(f"{request}: {_describe(error)}") from error


def _describe(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
