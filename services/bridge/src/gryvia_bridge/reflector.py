"""Follows one resource type of the API server for ever: LIST in pages, then WATCH from that version, and a new LIST
when the server forgot.

By hand on purpose: the client library's watch repeats a 410 with the same version and never lists again, takes an error
page's lines and half lines for events, hangs for ever on a half-open connection, and asks a server that closes at once
500 times a second.

Invariants: what the sink gets is complete (a list ends with `listed` only if every page of one moment came), never from
the past (a list older than anything seen is tried again, not handed on), and whatever the failure, the next try comes
after a backoff with jitter, for ever. Nothing is acted on but a well-formed line of a good answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Never, Protocol

import orjson
import structlog

from gryvia_bridge.state import TypeState
from gryvia_bridge.watched import Watched
from gryvia_common.bus.backoff import Backoff
from gryvia_common.clock import Clock
from gryvia_common.errors import Gone, GryviaError, Transient
from gryvia_common.kube.answers import Expired, Silent, error_of
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json
from gryvia_common.runtime.apiserver import ApiServer
from gryvia_common.trouble import Trouble

log = structlog.get_logger(__name__)

BACKOFF = (0.5, 30.0)
WATCH_FAILURES = 5
LONGEST_ASKED = 60.0
WATCH_SECONDS = (240, 360)
# API servers send bookmarks about once a minute, so a quiet watch is taken up anew (at once, at the same version)
# about as often: that is what noticing a half-open connection within a minute costs.
IDLE = 50.0
# A watch that ends sooner than this without an event counts as a failure: a server that closes at once is not asked in a loop.
SHORTEST_WATCH = 1.0


class Sink(Protocol):
    """Who gets what the reflector sees of its type. `floor`: begins a list, and says the version it must not be older
    than."""

    async def floor(self) -> int: ...

    async def page(self, objects: list[Json], version: int) -> None: ...

    async def listed(self, version: int) -> None: ...

    async def changed(self, event: str, obj: Json) -> None: ...


class Reflector:
    """One type. `relist(reason)` asks for a new LIST as soon as possible; the watch goes on after it. `api`: while it is away,
    one asks for all whether it is back, instead of each type with a backoff of its own."""

    def __init__(
        self,
        kube: Kube,
        watched: Watched,
        sink: Sink,
        state: TypeState,
        *,
        clock: Clock,
        relisted: Callable[[str], None] = lambda reason: None,
        api: ApiServer | None = None,
    ) -> None:
        self._kube = kube
        self._watched = watched
        self._sink = sink
        self._state = state
        self._clock = clock
        self._relisted = relisted
        self._api = api
        self._newest = 0
        self._reason = "start"
        self._relist = asyncio.Event()
        self._failures = 0
        self._trouble = Trouble()
        self._backoff = self._fresh_backoff()

    def relist(self, reason: str) -> None:
        if not self._relist.is_set():
            self._reason = reason
            self._relist.set()

    async def run(self) -> Never:
        while True:
            self._relist.clear()
            try:
                version = await self._list()
            except GryviaError as error:
                await self._failed("list", error)
                continue
            self._worked()
            self._relisted(self._reason)
            await self._watch_until_stale(version)

    async def _list(self) -> int:
        """One complete list, all of one moment; Expired between pages is just another failure."""
        floor = max(await self._sink.floor(), self._newest)
        following = ""
        while True:
            page = await self._kube.list_page(
                self._watched.resource,
                labels=self._watched.labels,
                following=following,
                metadata_only=self._watched.metadata_only,
            )
            if page.version < floor:
                raise Transient(
                    f"{self._watched.plural}: a list of version {page.version} is older than {floor}, which was seen: "
                    "an API server that lags behind answered"
                )
            await self._sink.page(page.items, page.version)
            following = page.following
            if not following:
                break
        self._newest = page.version
        await self._sink.listed(page.version)
        return page.version

    async def _watch_until_stale(self, version: int) -> None:
        """Watches, again and again, until only a new list helps."""
        self._newest = version
        asked = asyncio.ensure_future(self._relist.wait())
        watching = asyncio.ensure_future(self._watch_for_ever())
        try:
            await asyncio.wait((asked, watching), return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            watching.cancel()
            await asyncio.wait((asked, watching))
            self._state.live = False
        if not watching.cancelled():
            watching.result()

    async def _watch_for_ever(self) -> None:
        """Returns when the server has forgotten the version (410), or does not take it up in several tries."""
        while self._failures < WATCH_FAILURES:
            began = self._clock.monotonic()
            before = self._newest
            try:
                await self._watch()
            except Expired as error:
                log.info("bridge_watch_expired", plural=self._watched.plural, version=self._newest, error=str(error))
                self._reason = "expired"
                return
            except Silent:
                self._worked()
                continue
            except GryviaError as error:
                if self._newest > before:
                    self._worked()
                await self._failed("watch", error)
                continue
            if self._newest == before and self._clock.monotonic() - began < SHORTEST_WATCH:
                await self._failed("watch", Transient(f"{self._watched.plural}: the server closes the watch at once"))
            else:
                self._worked()
        self._reason = "failing"

    async def _watch(self) -> None:
        """One watch, from its beginning to the server's end of it."""
        lines_in = self._kube.watch(
            self._watched.resource,
            self._newest,
            labels=self._watched.labels,
            metadata_only=self._watched.metadata_only,
            timeout_seconds=random.randint(*WATCH_SECONDS),
            idle=IDLE,
        )
        self._state.began_watch(self._clock.monotonic())
        async with contextlib.aclosing(lines_in):
            async for lines in lines_in:
                self._state.heard(self._clock.monotonic())
                for line in lines:
                    await self._event(line)

    async def _event(self, line: bytes) -> None:
        """Raises Expired for a 410, Transient for anything that is not an event of an API server."""
        try:
            event = orjson.loads(line)
            kind, obj = event["type"], event["object"]
            if kind == "ERROR":
                raise error_of(f"watch {self._watched.plural}", int(obj.get("code") or 500), obj)
            version = int(obj["metadata"]["resourceVersion"])
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise Transient(f"watch {self._watched.plural}: a line that is no event: {line[:200]!r}") from error
        if kind == "BOOKMARK":
            self._newest = max(self._newest, version)
            return
        if kind not in ("ADDED", "MODIFIED", "DELETED"):
            raise Transient(f"watch {self._watched.plural}: an event of unknown type {kind!r}")
        obj["apiVersion"], obj["kind"] = self._watched.resource.api_version, self._watched.resource.kind
        await self._sink.changed(kind, obj)
        self._newest = max(self._newest, version)

    async def _failed(self, what: str, error: GryviaError) -> None:
        """Says it once, then waits."""
        text = str(error)
        away = self._api is not None and self._api.away
        if not away and self._trouble.is_news(error):
            level = log.warning if what == "list" or self._failures else log.info
            level(f"bridge_{what}_failed", plural=self._watched.plural, error=text, served=not isinstance(error, Gone))
        self._state.failed(text)
        self._failures += 1
        if isinstance(error, Transient) and error.retry_after:
            await self._clock.sleep(min(error.retry_after, LONGEST_ASKED))
        if self._api is not None and self._api.away:
            await self._api.answers()
        else:
            await self._backoff.wait()

    def _worked(self) -> None:
        if self._failures:
            self._trouble.over()
            self._failures = 0
            self._backoff = self._fresh_backoff()

    def _fresh_backoff(self) -> Backoff:
        return Backoff(self._clock, first=BACKOFF[0], last=BACKOFF[1])
