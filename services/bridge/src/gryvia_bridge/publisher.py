"""Publishes changes by compare-and-set on each subject's last sequence: many subjects at once, each subject in order.

While a publish of a subject is on its way, further changes of it wait, and only the newest is kept: the stream keeps
one message a subject anyway. A lost compare-and-set is read back by the bus: our own message is success, a newer state
ends the matter, an older one is overwritten under its sequence. Invariant: the version of a subject never goes down,
whoever else publishes; nothing is given up.
"""

from __future__ import annotations

import asyncio
from collections import deque

import structlog

from gryvia_bridge.checkpoint import Entry, Table, entry_of, is_due, tombstone
from gryvia_bridge.envelope import Envelope
from gryvia_bridge.metrics import BridgeMetrics
from gryvia_common.bus.backoff import Backoff
from gryvia_common.bus.connection import Bus
from gryvia_common.clock import Clock
from gryvia_common.errors import GryviaError, KnownOutage, Transient
from gryvia_common.trouble import Trouble

log = structlog.get_logger(__name__)

WINDOW = 256
WAITING_LIMIT = 1024
BACKOFF = (0.05, 5.0)


class Lane:
    """One type's part: `table` is what the stream is known to hold, `outstanding` how many changes are not stored
    yet."""

    def __init__(self) -> None:
        self.table: Table = {}
        self.outstanding = 0
        self.highest_sequence = 0
        self.stored_all = asyncio.Event()
        self.stored_all.set()


class Publisher:
    """Its work runs in `tasks`; when that group ends, what was not stored is forgotten (the next comparison finds
    it)."""

    def __init__(self, bus: Bus, tasks: asyncio.TaskGroup, *, clock: Clock, metrics: BridgeMetrics) -> None:
        self._bus = bus
        self._tasks = tasks
        self._clock = clock
        self._metrics = metrics
        self._waiting: dict[str, Envelope] = {}
        self._ready: deque[str] = deque()
        self._busy: dict[str, Envelope] = {}
        self._workers = 0
        self._room = asyncio.Event()
        self._room.set()
        self._lanes: dict[str, Lane] = {}
        self._trouble = Trouble()

    def lane(self, plural: str) -> Lane:
        lane = self._lanes.get(plural)
        if lane is None:
            lane = self._lanes[plural] = Lane()
        return lane

    @property
    def lanes(self) -> dict[str, Lane]:
        return self._lanes

    def offer(self, change: Envelope) -> None:
        """Takes a change; never waits. Await `room` between calls."""
        subject = change.subject
        waiting = self._waiting.get(subject)
        if waiting is not None:
            if (change.version, change.op == "deleted") > (waiting.version, waiting.op == "deleted"):
                self._waiting[subject] = change
            return
        lane = self.lane(change.plural)
        lane.outstanding += 1
        lane.stored_all.clear()
        self._waiting[subject] = change
        if len(self._waiting) >= WAITING_LIMIT:
            self._room.clear()
        if subject not in self._busy:
            self._ready.append(subject)
            if self._workers < WINDOW:
                self._begin_work()

    @property
    def full(self) -> bool:
        return not self._room.is_set()

    async def room(self) -> None:
        """Returns when there is room for more: what reads the watch waits here, and with it the API server."""
        await self._room.wait()

    async def flush(self, plural: str) -> None:
        """Returns when every change of the type that was offered is stored (or was found not to be due)."""
        await self.lane(plural).stored_all.wait()

    @property
    def outstanding(self) -> int:
        return sum(lane.outstanding for lane in self._lanes.values())

    def lag(self) -> float:
        """Seconds since the oldest change came in that is not stored yet; 0 when all are."""
        oldest = min((change.received for change in self._busy.values()), default=None)
        if oldest is None:
            return 0.0
        return max(0.0, self._clock.monotonic() - oldest)

    def _begin_work(self) -> None:
        work = self._work()
        try:
            self._tasks.create_task(work)
        except RuntimeError:
            # The term is ending, and who offered this change with it; the next term finds it in its list.
            work.close()
        else:
            self._workers += 1

    async def _work(self) -> None:
        while self._ready:
            subject = self._ready.popleft()
            change = self._waiting.pop(subject)
            if len(self._waiting) < WAITING_LIMIT:
                self._room.set()
            self._busy[subject] = change
            lane = self.lane(change.plural)
            await self._store(subject, change, lane)
            del self._busy[subject]
            if subject in self._waiting:
                self._ready.append(subject)
            lane.outstanding -= 1
            if lane.outstanding == 0:
                lane.stored_all.set()
        self._workers -= 1

    async def _store(self, subject: str, change: Envelope, lane: Lane) -> None:
        """Returns when the stream holds `change` or something newer."""
        body, headers = change.message(self._bus.max_payload)
        stray = change.replaces is not None
        entry = lane.table.get(change.key)
        expected = change.replaces or (entry.sequence if entry and entry.partition == change.partition else 0)
        backoff = Backoff(self._clock, first=BACKOFF[0], last=BACKOFF[1])
        while stray or is_due(change, entry):
            try:
                published = await self._bus.publish(subject, body, headers, expected_sequence=expected)
            except GryviaError as error:
                self._say(subject, error)
                await backoff.wait()
                continue
            if published.outcome in ("unknown", "duplicate"):
                # The compare-and-set is checked before the duplicate: a duplicate that passed it is not in the stream any more
                # (purged within the duplicate window), and has to wait until the window is over.
                self._say(
                    subject, Transient(f"outcome {published.outcome}") if self._bus.connected else KnownOutage("")
                )
                await backoff.wait()
            elif published.outcome == "conflict":
                self._metrics.conflicts.labels(change.plural).inc()
                if stray:
                    return
                expected = published.sequence
                entry = entry_of(published.current)[1] if published.current else None
                if entry is not None:
                    lane.table[change.key] = entry
            else:
                self._record(change, lane, published.sequence, stray)
                return

    def _say(self, subject: str, error: GryviaError) -> None:
        """One line for all subjects: an outage is one event, not a thousand."""
        if self._trouble.is_news(error):
            log.warning("bridge_publish_fails", subject=subject, error=str(error), outstanding=self.outstanding)

    def _record(self, change: Envelope, lane: Lane, sequence: int, stray: bool) -> None:
        self._trouble.over()
        self._metrics.published.labels(change.plural, change.op).inc()
        lane.highest_sequence = max(lane.highest_sequence, sequence)
        if stray:
            return
        before = lane.table.get(change.key)
        lane.table[change.key] = Entry(change.partition, change.uid, change.version, change.op == "deleted", sequence)
        if before is not None and before.partition != change.partition and not before.deleted:
            self.offer(
                tombstone(change.plural, change.key, before, before.version, self._clock.monotonic(), stray=True)
            )
