"""Calls to URLs that users wrote: to nowhere but where anybody could call, whatever the name, the resolver or a redirect says.

A host is resolved once a call, every address of the answer is judged, and the connection goes to these addresses and no others: each
socket is judged once more as it is made, so neither a name that changes its mind (DNS rebinding) nor a form of an address that
only the connector understands gets by. TLS and the Host header keep the name. A redirect is a new call with the same rules, never from
https to http, and to another origin it takes along no headers but harmless ones. Proxies of the environment and cookies are not used.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from gryvia_common.errors import GryviaError, Terminal, Transient
from gryvia_common.outbound.addresses import Address, addresses
from gryvia_common.outbound.allowed import Allowed
from gryvia_common.outbound.body import PIECE, read_bounded
from gryvia_common.outbound.target import header_problems, parse_target, shown

BLOCKED = "Blocked"
"""Reason of the Terminal that means: this place may not be called."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HARMLESS = frozenset({"accept", "accept-language", "content-type", "idempotency-key", "user-agent"})
_AddrInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Call:
    """What to send. `keep`: statuses that are an answer though they are a redirect."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    keep: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Limits:
    """`seconds` for everything together, redirects included; `body`: bytes of the answer that are read."""

    seconds: float = 10.0
    body: int = 64 * 1024
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` may be the beginning only (`cut`). `origin`: who answered. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool
    origin: str


class Outbound:
    """`resolver` and `tls` (trust in other authorities) are the system's when left out."""

    def __init__(
        self,
        allowed: Allowed,
        *,
        agent: str = "gryvia",
        resolver: AbstractResolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._allowed, self._agent, self._resolver, self._tls = allowed, agent, resolver, tls

    async def send(self, call: Call, limits: Limits) -> Answer:
        """Terminal: what was asked for must change (reason Blocked: the place is not allowed). Transient: no answer this time,
        and whether the other side has acted on the call is unknown."""
        url = parse_target(call.url)
        for problem in header_problems(call.headers):
            raise Terminal(problem)
        try:
            async with asyncio.timeout(limits.seconds):
                return await self._follow(url, call, limits)
        except TimeoutError as error:
            raise Transient(f"{shown(url)} did not answer within {limits.seconds:g} s") from error

    async def _follow(self, url: URL, call: Call, limits: Limits) -> Answer:
        for _ in range(limits.redirects + 1):
            answer = await self._once(url, call, limits)
            place = answer.headers.get("location")
            if answer.status not in _REDIRECTS - call.keep or place is None:
                return answer
            url, call = _redirected(url, call, answer.status, place)
        raise Terminal(f"{shown(url)}: more than {limits.redirects} redirects")

    async def _once(self, url: URL, call: Call, limits: Limits) -> Answer:
        guard = _Guard(self._allowed, url, self._resolver or ThreadedResolver())
        connector = aiohttp.TCPConnector(
            resolver=guard, use_dns_cache=False, force_close=True, socket_factory=guard.socket, ssl=self._tls or True
        )
        headers = {"Accept-Encoding": "identity", "User-Agent": self._agent, **call.headers}
        try:
            async with (
                aiohttp.ClientSession(
                    connector=connector,
                    cookie_jar=aiohttp.DummyCookieJar(),
                    auto_decompress=False,
                    trust_env=False,
                    timeout=aiohttp.ClientTimeout(total=None),
                ) as session,
                session.request(call.method, url, headers=headers, data=call.body, allow_redirects=False) as response,
            ):
                encoding = ",".join(response.headers.getall("Content-Encoding", []))
                body, cut = await read_bounded(response.content.iter_chunked(PIECE), encoding, limits.body)
                found = {name.lower(): value for name, value in response.headers.items()}
                return Answer(response.status, found, body, cut, shown(url))
        except GryviaError:
            raise
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError, ssl.SSLError) as error:
            raise Terminal(f"{shown(url)}: TLS failed: {_short(error)}") from error
        except aiohttp.ClientConnectorDNSError as error:
            raise Transient(f"{shown(url)}: the name cannot be resolved") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Transient(f"{shown(url)}: {_short(error)}") from error
        except ValueError as error:
            raise Terminal(f"{shown(url)}: the call cannot be sent") from error


class _Guard(AbstractResolver):
    """The resolver of one call, and the maker of its sockets."""

    def __init__(self, allowed: Allowed, url: URL, resolver: AbstractResolver) -> None:
        self._allowed, self._resolver, self._origin = allowed, resolver, shown(url)
        self._host, self._port = url.raw_host or "", url.port or 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for address in addresses(one["host"] for one in found):
            self._judge(address)
        return found

    def socket(self, info: _AddrInfo) -> socket.socket:
        family, kind, protocol, _, place = info
        self._judge(ip_address(str(place[0])))
        return socket.socket(family, kind, protocol)

    async def close(self) -> None:
        """The resolver is not this call's."""

    def _judge(self, address: Address) -> None:
        why = self._allowed.why_not(self._host, self._port, address)
        if why:
            raise Terminal(f"{self._origin} may not be called: its address is {why}", reason=BLOCKED)


def _redirected(url: URL, call: Call, status: int, place: str) -> tuple[URL, Call]:
    try:
        to = parse_target(urljoin(str(url), place))
    except (Terminal, ValueError) as error:
        raise Terminal(f"{shown(url)} redirects to a place that cannot be called: {error}", reason=BLOCKED) from error
    if url.scheme == "https" and to.scheme != "https":
        raise Terminal(f"{shown(url)} redirects to {shown(to)}, from https to http", reason=BLOCKED)
    if to.origin() != url.origin():
        call = replace(call, headers={name: value for name, value in call.headers.items() if name.lower() in _HARMLESS})
    if (status == 303 and call.method != "HEAD") or (status in (301, 302) and call.method == "POST"):
        kept = {name: value for name, value in call.headers.items() if not name.lower().startswith("content-")}
        call = replace(call, method="GET", body=None, headers=kept)
    return to, call


def _short(error: Exception) -> str:
    """What went wrong, without the address that was tried or anything that was sent."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(getattr(error.certificate_error, "verify_message", "")) or "the certificate is not trusted"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    known = {
        aiohttp.ServerDisconnectedError: "the server closed the connection without an answer",
        aiohttp.ClientPayloadError: "the answer broke off",
        aiohttp.ClientResponseError: "the answer is not HTTP",
    }
    return next((words for kind, words in known.items() if isinstance(error, kind)), type(error).__name__)
