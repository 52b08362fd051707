"""WATCH over HTTP: a cursor on the type's log, written to the client as JSON lines.

Everything that is ready goes out in one write. A selector makes an object that stops matching a DELETED and one that
starts matching an ADDED, as in the real server. When the cursor falls behind the history, the stream ends with an ERROR
event that carries the 410 Status, and so it does when the version was forgotten before.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import orjson

from gryvia_devcluster.api.catalog import Served
from gryvia_devcluster.api.forms import Render
from gryvia_devcluster.api.listing import check_not_ahead, check_options, flag, integer, selectors, version
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store import Change, Cursor, Entry, FieldSelector, LabelSelector, Store

BOOKMARK_SECONDS = 30.0


@dataclass(slots=True)
class Watch:
    """One client's watch. `lines` yields chunks of whole lines until the timeout or the end of the history."""

    store: Store
    render: Render
    resource: str
    namespace: str | None
    label: LabelSelector
    field: FieldSelector
    cursor: Cursor | ApiError
    initial: list[Entry] | None
    seconds: float
    bookmarks: bool
    initial_end: bool
    _columns_sent: bool = False

    async def lines(self) -> AsyncIterator[bytes]:
        cursor = self.cursor
        if isinstance(cursor, ApiError):
            yield _error(cursor)
            return
        if self.initial is not None:
            chunk = b"".join(self._event("ADDED", entry) for entry in self.initial if self._matches(entry))
            if self.initial_end:
                chunk += self.render.bookmark(self.store.rv, initial_end=True)
            if chunk:
                yield chunk
        loop = asyncio.get_running_loop()
        end = loop.time() + self.seconds
        while (left := end - loop.time()) > 0:
            try:
                changes = cursor.take()
            except ApiError as error:
                yield _error(error)
                return
            if chunk := b"".join(self._line(change) for change in changes):
                yield chunk
                continue
            if not await _wait(cursor, min(left, BOOKMARK_SECONDS)) and self.bookmarks and cursor.idle:
                yield self.render.bookmark(self.store.rv, initial_end=False)

    def _matches(self, entry: Entry) -> bool:
        obj = entry.obj
        return self.label.matches(obj) and self.field.matches(obj)

    def _event(self, kind: str, entry: Entry) -> bytes:
        columns, self._columns_sent = not self._columns_sent, True
        return self.render.event(kind, entry, columns=columns)

    def _line(self, change: Change) -> bytes:
        entry = change.entry
        if self.namespace is not None and entry.key.namespace != self.namespace:
            return b""
        if not self.label and not self.field:
            return self.render.line(change) if self.render.form == "plain" else self._event(change.type, entry)
        was = change.previous is not None and self._matches(change.previous)
        now = change.type != "DELETED" and self._matches(entry)
        if now:
            return self._event("MODIFIED" if was else "ADDED", entry)
        return self._event("DELETED", entry) if was else b""


async def _wait(cursor: Cursor, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await cursor.wait()
    except TimeoutError:
        return False
    return True


def _error(error: ApiError) -> bytes:
    return orjson.dumps({"type": "ERROR", "object": error.status()}) + b"\n"


def _cursor(store: Store, resource: str, since: int) -> Cursor | ApiError:
    """A forgotten version is refused within the stream, as by the real server's cache."""
    try:
        return store.cursor(resource, since)
    except ApiError as error:
        return error


def open_watch(store: Store, served: Served, render: Render, namespace: str | None, query: Mapping[str, str]) -> Watch:
    """Raises ApiError for options that make no sense; a version that is forgotten is told in the stream."""
    label, field = selectors(served, query)
    since = version(query, "", "")
    check_options(query, watch=True)
    initial_end = flag(query, "sendInitialEvents")
    resource = served.rt.group_resource
    from_now = initial_end or since == 0
    check_not_ahead(store, since)
    send_state = from_now and (initial_end or "sendInitialEvents" not in query)
    return Watch(
        store=store,
        render=render,
        resource=resource,
        namespace=namespace,
        label=label,
        field=field,
        cursor=_cursor(store, resource, store.rv if from_now else since),
        initial=store.entries(resource, namespace) if send_state else None,
        seconds=float(integer(query, "timeoutSeconds") or random.randint(1800, 3600)),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_end=initial_end,
    )
