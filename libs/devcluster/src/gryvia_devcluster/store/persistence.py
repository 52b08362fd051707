"""The SQLite file behind the store: what lets a cluster survive its process.

Writes are collected in memory and flushed by one background task in one transaction, in a thread, so the event loop never
waits for the disk. A crash may lose the last flush interval of writes, but never reuses a resource version: versions are
reserved ahead in large blocks, and a restart begins at the end of the reserved block. The watch history is not kept, so a
watcher from before a restart gets 410 and relists.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson

from gryvia_devcluster.store.entry import Entry, Key

log = logging.getLogger(__name__)

BLOCK = 1_000_000
_RETRY_SECONDS = 2.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, rv INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_Row = tuple[str, str, str]
_Stored = tuple[str, str, str, int, bytes]


class DamagedState(Exception):
    """The state file cannot be read. The message is one sentence for the user."""


class StateFile:
    """Opened at construction; `run` flushes until cancelled; `close` flushes what is left. Raises DamagedState."""

    def __init__(self, path: Path, *, interval: float = 0.2) -> None:
        self.path = path
        self._interval = interval
        self._dirty: dict[_Row, Entry | None] = {}
        self._version = 0
        self._changed = asyncio.Event()
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._prepare()
        except (sqlite3.DatabaseError, ValueError) as error:
            raise DamagedState(
                f"The state file {path} is damaged ({error}): move it away to start with an empty cluster."
            ) from error

    def _prepare(self) -> None:
        if self._db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise ValueError("quick_check failed")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)
        row = self._db.execute("SELECT value FROM meta WHERE key = 'reserved'").fetchone()
        self.first_version: int = row[0] if row else 0
        self._reserved = self.first_version
        self._version = self.first_version
        self._reserve()

    def _reserve(self) -> None:
        if self._version + BLOCK // 2 > self._reserved:
            self._reserved = self._version + BLOCK
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('reserved', ?)", (self._reserved,))

    def load(self) -> Iterator[tuple[str, Entry]]:
        """Every stored object as (group resource, entry)."""
        try:
            for resource, namespace, name, rv, body in self._db.execute(
                "SELECT resource, namespace, name, rv, body FROM objects"
            ):
                entry = Entry(Key(namespace, name), rv, raw=bytes(body))
                entry.retain()["metadata"]["uid"]
                yield resource, entry
        except (sqlite3.DatabaseError, orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise DamagedState(
                f"The state file {self.path} is damaged ({error}): move it away to start with an empty cluster."
            ) from error

    def write(self, resource: str, entry: Entry) -> None:
        self._dirty[resource, *entry.key] = entry
        self._version = entry.rv
        self._changed.set()

    def erase(self, resource: str, key: Key, rv: int) -> None:
        self._dirty[resource, *key] = None
        self._version = rv
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled. A write that fails (a full disk) is tried again; nothing is dropped from memory for it."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._interval)
            try:
                await self.flush()
            except sqlite3.Error as error:
                log.error("cannot write the state file", extra={"path": str(self.path), "error": str(error)})
                await asyncio.sleep(_RETRY_SECONDS)

    async def flush(self) -> None:
        """Writes what changed since the last flush; done when it is in the file. Raises sqlite3.Error."""
        self._changed.clear()
        dirty, self._dirty = self._dirty, {}
        if not dirty:
            return
        gone = [row for row, entry in dirty.items() if entry is None]
        kept = [(*row, entry.rv, entry.raw) for row, entry in dirty.items() if entry is not None]
        try:
            await asyncio.shield(asyncio.to_thread(self._commit, gone, kept))
        except sqlite3.Error:
            self._dirty = {**dirty, **self._dirty}
            self._changed.set()
            raise

    def _commit(self, gone: list[_Row], kept: list[_Stored]) -> None:
        with self._lock, self._db:
            self._db.execute("BEGIN")
            self._db.executemany("DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", gone)
            self._db.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", kept)
            self._reserve()

    async def close(self) -> None:
        await self.flush()
        self._db.close()
