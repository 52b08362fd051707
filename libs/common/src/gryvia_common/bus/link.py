"""One connection to NATS that never gives up, and requests over it that never hang.

Invariant: whatever waits for an answer learns at once when the connection is lost, so recovery takes one reconnection
and not one timeout. `epoch` counts connections: a subscription made in an older epoch may have missed messages.

By hand, on top of nats-py: its own `request` waits for its deadline through an outage, and its client closes for ever
on some server errors (a revoked user, a protocol error); here a closed client is replaced by a new one. Nothing is
buffered while disconnected (pending_size 0), because a publish that times out and is still sent minutes later is
worse than one refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping

import structlog
from nats.aio.client import Client, Server
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import UnexpectedEOF

from gryvia_common.bus.settings import BusSettings
from gryvia_common.errors import KnownOutage, Terminal, Transient
from gryvia_common.tasks import end_task
from gryvia_common.trouble import Trouble

_CLOSE_SECONDS = 2.0
_RECONNECT_SECONDS = (0.1, 0.4)
_REPLACE_SECONDS = 30.0
_NO_RESPONDERS = "503"
_VIOLATION = "permissions violation"

log = structlog.get_logger(__name__)


class NoResponders(Transient):
    """Nobody listens on the subject: nothing was stored, and nothing will be."""


class Link:
    """See the module's docstring. `outages` counts for the metrics; `generation` counts clients, whose
    subscriptions outlive a reconnection but not the client."""

    def __init__(self, settings: BusSettings, name: str) -> None:
        self.settings = settings
        self.name = name
        self.epoch = 0
        self.generation = 0
        self.outages = 0
        self._trouble = Trouble()
        self._client = Client()
        self._waiting: dict[str, asyncio.Future[Msg]] = {}
        self._inbox = ""
        self._tokens = 0
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._down.set()
        self._closing = False
        self._on_found: list[Callable[[], None]] = []
        self._closed = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        return self._up.is_set()

    @property
    def max_payload(self) -> int:
        return self._client.max_payload

    async def open(self) -> None:
        """Returns once connected, however long that takes."""
        try:
            await self._connect()
        except BaseException:
            await self.close()
            raise
        self._keeper = asyncio.create_task(self._keep(), name=f"bus-link-{self.name}")

    async def close(self) -> None:
        """Takes at most a few seconds. Not nats-py's drain: that can hang for its whole deadline."""
        self._closing = True
        self._lost()
        if self._keeper is not None:
            await end_task(self._keeper)
        await self._end_client()

    async def until_connected(self) -> None:
        await self._up.wait()

    async def until_lost(self, epoch: int) -> None:
        """Returns when the connection of `epoch` is no longer the present one."""
        while self.epoch == epoch and self.connected:
            await self._down.wait()

    async def publish(self, subject: str, body: bytes = b"", *, reply: str = "") -> None:
        """Without an answer. Raises Transient when not connected."""
        try:
            await self._client.publish(subject, body, reply=reply)
        except NatsError as error:
            raise Transient(f"NATS did not take {subject}: {error}") from error

    async def subscribe(self, subject: str, receive: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """Raises Transient when not connected."""
        if not self.connected:
            raise KnownOutage("not connected to NATS")
        try:
            # No limit on what is pending: the reader's pull requests are one. Beyond a limit nats-py drops without a
            # word.
            return await self._client.subscribe(subject, cb=receive, pending_bytes_limit=0)
        except NatsError as error:
            raise Transient(f"NATS did not take the subscription to {subject}: {error}") from error

    def on_connected(self, call: Callable[[], None]) -> None:
        """`call` is called at every connection from now on."""
        self._on_found.append(call)

    def new_inbox(self) -> str:
        return self._client.new_inbox()

    async def request(
        self, subject: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> Msg:
        """The answer. Raises Transient when there is none in time, nobody listens, or the connection is lost meanwhile;
        Terminal for a body above the server's limit."""
        if self.connected and not self._client.is_connected:
            # The client knows of the loss before it tells us; a caller that repeats at once must not starve it.
            self._lost()
        if not self.connected:
            await self._await_connection(timeout)
        if len(body) > self.max_payload:
            raise Terminal(
                f"message of {len(body)} bytes on {subject} is above the NATS server's max_payload of {self.max_payload}"
            )
        token = self._next_token()
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._waiting[token] = answer
        try:
            await self._client.publish(
                subject, body, reply=f"{self._inbox}.{token}", headers=dict(headers) if headers is not None else None
            )
            async with asyncio.timeout(timeout or self.settings.timeout):
                message = await answer
        except TimeoutError as error:
            raise Transient(f"NATS gave no answer on {subject} in {timeout or self.settings.timeout:g} s") from error
        except NatsError as error:
            raise Transient(f"NATS did not take {subject}: {error}") from error
        finally:
            del self._waiting[token]
        if message.headers is not None and message.headers.get("Status") == _NO_RESPONDERS:
            raise NoResponders(f"nobody answers on {subject}: JetStream is not ready or the stream is missing")
        return message

    async def _await_connection(self, timeout: float | None) -> None:
        if self._closing:
            raise Transient("the bus is closed")
        try:
            async with asyncio.timeout(timeout or self.settings.timeout):
                await self._up.wait()
        except TimeoutError as error:
            raise KnownOutage(f"not connected to NATS ({self._trouble.last or 'connecting'})") from error

    def _next_token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:x}"

    async def _answered(self, message: Msg) -> None:
        future = self._waiting.get(message.subject.rpartition(".")[2])
        if future is not None and not future.done():
            future.set_result(message)

    async def _connect(self) -> None:
        settings = self.settings
        client = Client()
        self._client = client
        self.generation += 1
        self._closed.clear()

        async def disconnected() -> None:
            if client is self._client:
                self._lost()

        async def reconnected() -> None:
            if client is self._client:
                self._found()

        async def closed() -> None:
            if client is self._client:
                self._lost()
                self._closed.set()

        await client.connect(
            settings.servers,
            name=self.name,
            max_reconnect_attempts=-1,
            reconnect_time_wait=_RECONNECT_SECONDS[1],  # type: ignore[arg-type]  # annotated int, used as seconds
            reconnect_to_server_handler=_next_server,
            connect_timeout=2,
            ping_interval=20,
            max_outstanding_pings=2,
            pending_size=0,
            inbox_prefix=settings.inbox,
            tls=settings.ssl_context(),
            user=settings.user or None,
            password=settings.password if settings.user else None,
            user_credentials=settings.credentials_file,
            nkeys_seed=str(settings.nkey_file) if settings.nkey_file else None,
            error_cb=self._on_error,
            disconnected_cb=disconnected,
            reconnected_cb=reconnected,
            closed_cb=closed,
        )
        self._inbox = client.new_inbox()
        await client.subscribe(f"{self._inbox}.*", cb=self._answered)
        self._found()

    async def _keep(self) -> None:
        """Replaces a client that has closed for good, or that does not find its way back."""
        while True:
            await self._down.wait()
            if not await self._is_back():
                try:
                    await self._end_client()
                    await asyncio.sleep(random.uniform(*_RECONNECT_SECONDS))
                    await self._connect()
                except Exception as error:  # noqa: BLE001  whatever it is (a half-written key file), the next attempt may do
                    await self._on_error(error)

    async def _is_back(self) -> bool:
        """False as soon as the client is closed, or when it has been trying for too long."""
        waits = [asyncio.create_task(event.wait()) for event in (self._up, self._closed)]
        try:
            await asyncio.wait(waits, timeout=_REPLACE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return self._up.is_set()

    async def _end_client(self) -> None:
        with contextlib.suppress(TimeoutError, NatsError, OSError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._client.close()

    def _found(self) -> None:
        self.epoch += 1
        self._down.clear()
        self._up.set()
        if self.epoch > 1:
            log.info("bus_connection_restored", name=self.name, outages=self.outages)
        self._trouble.over()
        for call in self._on_found:
            call()

    def _lost(self) -> None:
        was_up = self._up.is_set()
        self._up.clear()
        self._down.set()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(KnownOutage("the connection to NATS was lost; the outcome is unknown"))
        if was_up and not self._closing:
            self.outages += 1
            log.warning("bus_connection_lost", name=self.name, error=self._trouble.last)

    async def _on_error(self, error: Exception) -> None:
        text = self._trouble.last = str(error) or type(error).__name__
        if _VIOLATION in text.lower():
            # A request that was refused so gets no answer: without this line it would only be slow.
            log.error("bus_permission_violation", name=self.name, error=text)
        elif self.connected and not isinstance(error, UnexpectedEOF | OSError):
            log.warning("bus_error", name=self.name, error=text)
        elif not self.connected and self._trouble.is_news(error) and not self._closing:
            log.warning("bus_unreachable", name=self.name, servers=self.settings.addresses, error=text)


def _next_server(servers: list[Server], info: Mapping[str, object]) -> tuple[Server | None, float]:
    """The server tried least often, after a short wait with jitter, so that a restart of the server is not a
    stampede."""
    return min(servers, key=lambda server: server.reconnects), random.uniform(*_RECONNECT_SECONDS)
