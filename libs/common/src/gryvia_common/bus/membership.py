"""Which partitions this replica works on.

Every live replica keeps a heartbeat; one document a service says who claims which partition, changed by
compare-and-set; a claim counts only while its holder's heartbeat lives. Invariant: `held` is empty before anyone else
can take over: it counts from the moment the last confirmed heartbeat was *sent*, on the monotonic clock, and ends a
margin before the server lets that heartbeat go. A lease that has lapsed never comes back: the replica returns under a
new incarnation, so that its claims of before are free for whoever is first, and both write the same document.

By hand: Kubernetes leader election is for one leader, and kubernetes_asyncio's is broken (engineering notes, A3).
Leases are for order and efficiency; safety rests on uid checks, deterministic names, server-side apply and
resourceVersions.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Never

import structlog

from gryvia_common.bus.connection import Bus
from gryvia_common.bus.leases import LeaseStore, NatsLeases
from gryvia_common.bus.shares import step
from gryvia_common.bus.subjects import escape
from gryvia_common.clock import Clock
from gryvia_common.errors import Conflict, Gone, Terminal, Transient
from gryvia_common.trouble import Trouble

_RETRY = 0.5
_GOODBYE = 3.0
_NEVER = float("-inf")

log = structlog.get_logger(__name__)

Gained = Callable[[frozenset[int]], None]
Release = Callable[[frozenset[int]], Awaitable[None]]


class Membership:
    """`ttl`: how long a heartbeat counts; it is renewed four times in that time. `replica` names the process (the
    pod's name): when a process of the same name starts again, the old one's claims are free at once. `store` is for
    tests."""

    def __init__(
        self, bus: Bus, service: str, replica: str, *, clock: Clock, ttl: float = 12.0, store: LeaseStore | None = None
    ) -> None:
        self._store = store if store is not None else NatsLeases(bus, service)
        self._service = service
        self._replica = escape(replica)
        self._clock = clock
        self._ttl = ttl
        self._renew_every = ttl / 4
        self._margin = ttl / 6
        self._member = ""
        self._valid_until = _NEVER
        self._held: frozenset[int] = frozenset()
        self._look = asyncio.Event()
        self._hurry = asyncio.Event()
        self._trouble = Trouble()
        self._unseen = False
        self._quiet_until = _NEVER

    @property
    def held(self) -> frozenset[int]:
        """The partitions to work on; empty as soon as the lease may have lapsed."""
        return self._held if self._clock.monotonic() < self._valid_until else frozenset()

    @property
    def is_valid(self) -> bool:
        """Whether the lease counts now; a replica may well hold no partition under it."""
        return self._clock.monotonic() < self._valid_until

    async def run(self, *, gained: Gained, release: Release) -> Never:
        """Runs until cancelled. `gained` says what to begin with; `release` is awaited before partitions are given up
        (they are not in `held` any more by then), also on the way out and after a lapse."""
        self._member = self._new_member()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._beat(), name=f"heartbeat-{self._service}")
                tasks.create_task(self._assign(gained, release), name=f"partitions-{self._service}")
            raise AssertionError("the loops run until cancelled")
        finally:
            held, self._held = self._held, frozenset()
            if held:
                await release(held)
            await self._leave()

    async def _beat(self) -> Never:
        while True:
            if self._lapsed:
                # The old name must not live again, or its claims would count again while another takes them: first a
                # new one.
                self._look.set()
                await self._clock.sleep(_RETRY)
                continue
            member, sent = self._member, self._clock.monotonic()
            try:
                await self._store.renew(member)
            except (Transient, Gone, Terminal) as error:
                await self._failed(error)
                continue
            await self._confirm(member, sent)
            await self._first_of(self._hurry, self._renew_every)

    async def _confirm(self, member: str, sent: float) -> None:
        """An answer that comes after the end of the lease proves nothing: the heartbeat may have been away in
        between."""
        if member != self._member or self._lapsed:
            return
        first = self._valid_until == _NEVER
        self._valid_until = sent + self._ttl - self._margin
        self._trouble.over()
        if first or self._unseen:
            self._unseen = False
            self._look.set()
            await self._poke()

    @property
    def _lapsed(self) -> bool:
        return self._valid_until != _NEVER and self._clock.monotonic() >= self._valid_until

    async def _assign(self, gained: Gained, release: Release) -> Never:
        while True:
            await self._wait_for_a_reason()
            if self._lapsed:
                await self._return_anew(release)
            if self._valid_until == _NEVER:
                continue
            try:
                await self._store.listen(self._look.set)
                await self._settle(gained, release)
            except Conflict:
                self._look.set()  # somebody else wrote first: look again, at once
            except (Transient, Gone, Terminal) as error:
                await self._failed(error)

    async def _wait_for_a_reason(self) -> None:
        """A poke, the next round, the end of the lease, or of the quiet after a wipe, whichever comes first."""
        now = self._clock.monotonic()
        ends = [end - now for end in (self._valid_until, self._quiet_until) if end > now]
        await self._first_of(self._look, min(self._renew_every, max(min(ends, default=self._renew_every), _RETRY / 10)))

    async def _first_of(self, event: asyncio.Event, seconds: float) -> None:
        happened = asyncio.create_task(event.wait())
        slept = asyncio.create_task(self._clock.sleep(seconds))
        try:
            await asyncio.wait((happened, slept), return_when=asyncio.FIRST_COMPLETED)
        finally:
            happened.cancel()
            slept.cancel()
        event.clear()

    async def _settle(self, gained: Gained, release: Release) -> None:
        """Reads who lives and who claims what, and does this replica's part."""
        released: frozenset[int] = frozenset()
        member = self._member
        while True:
            # In this order: whoever made a claim of this revision lived before it, so who is missing afterwards has
            # died.
            claims, revision = await self._store.claims()
            live = _newest(await self._store.live())
            if member not in live:
                await self._unlisted(live, gained, release)
                return
            if revision == 0 and await self._is_wiped(gained, release):
                return
            now_mine = frozenset(part for part, holder in claims.items() if holder == member)
            if lost := self._held - now_mine:
                await self._hold(self._held - lost, gained, release)
            plan = step(claims, live, member, released)
            if not plan.release:
                break
            self._held -= plan.release
            await release(plan.release)
            released |= plan.release
        if plan.claims != claims:
            await self._store.write_claims(plan.claims, revision)
            await self._poke()
        if not self._lapsed:
            mine = frozenset(part for part, holder in plan.claims.items() if holder == member)
            await self._hold(mine, gained, release)

    async def _is_wiped(self, gained: Gained, release: Release) -> bool:
        """The document we held by is gone. Nobody claims anything before everybody has had the time to notice."""
        if self._held:
            log.warning("lease_store_wiped", service=self._service)
            self._quiet_until = self._clock.monotonic() + self._renew_every + 2 * _RETRY
            await self._hold(frozenset(), gained, release)
        return self._clock.monotonic() < self._quiet_until

    async def _unlisted(self, live: frozenset[str], gained: Gained, release: Release) -> None:
        """Nobody counts our claims: the buckets were wiped, or a newer process has our name."""
        if any(other.partition("/")[0] == self._replica for other in live):
            log.warning("partitions_superseded", service=self._service, replica=self._replica)
        else:
            self._unseen = True
            self._hurry.set()
        await self._hold(frozenset(), gained, release)

    async def _hold(self, parts: frozenset[int], gained: Gained, release: Release) -> None:
        lost, new = self._held - parts, parts - self._held
        self._held = parts
        if lost:
            log.warning("partitions_lost", service=self._service, partitions=sorted(lost))
            await release(lost)
        if new:
            log.info("partitions_gained", service=self._service, partitions=sorted(new), held=len(parts))
            gained(new)

    async def _return_anew(self, release: Release) -> None:
        await self._hold(frozenset(), lambda _: None, release)
        self._member = self._new_member()
        self._valid_until = _NEVER

    async def _failed(self, error: Exception) -> None:
        """Says so once, and waits: a bucket that is missing comes back by the bridge."""
        if self._trouble.is_news(error):
            log.warning("lease_store_unreachable", service=self._service, error=str(error))
        await self._clock.sleep(_RETRY)
        self._hurry.set()
        self._look.set()

    async def _poke(self) -> None:
        with contextlib.suppress(Transient):
            await self._store.poke()

    async def _leave(self) -> None:
        """So that the others need not wait for the heartbeat to expire."""
        with contextlib.suppress(Transient, Gone, Terminal, TimeoutError):
            async with asyncio.timeout(_GOODBYE):
                await self._store.leave(self._member)
                await self._store.poke()

    def _new_member(self) -> str:
        """Incarnations of one replica compare by their time, so that the newest supersedes the others."""
        return f"{self._replica}/{int(self._clock.now().timestamp() * 1_000_000):014x}"


def _newest(live: frozenset[str]) -> frozenset[str]:
    """Of each replica only its newest incarnation."""
    newest: dict[str, str] = {}
    for member in sorted(live):
        newest[member.partition("/")[0]] = member
    return frozenset(newest.values())
