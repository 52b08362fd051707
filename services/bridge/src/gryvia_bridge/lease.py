"""One active bridge, any number of standbys: a Kubernetes Lease, as client-go's leader election keeps it.

By hand: the client library's election lets the work go on after the lease is lost, and never campaigns again. Here the
work is cancelled first when the renew deadline passes, which is well before anybody may take the lease; it is released
at the end, and campaigned for again after a loss. All deadlines are monotonic: whether another's lease has lapsed is
judged by how long it has not changed before our eyes, never by comparing its wall time with ours. The lease is for
order only; two bridges at once do no harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Never, TypeVar

import structlog

from gryvia_common.bus.backoff import Backoff
from gryvia_common.clock import Clock
from gryvia_common.errors import Conflict, Gone, GryviaError
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import LEASES
from gryvia_common.runtime.apiserver import ApiServer
from gryvia_common.trouble import Trouble

log = structlog.get_logger(__name__)

T = TypeVar("T")
LONGEST_POLL = 5.0
_RELEASE_LIMIT = 2.0


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Seconds. `renew_deadline` below `duration` by more than stopping the work can take; `poll`: how often a standby
    looks."""

    namespace: str
    name: str = "gryvia-bridge"
    duration: int = 15
    renew_deadline: float = 10.0
    retry: float = 2.0
    poll: float = 0.8


class Election:
    """`identity` must differ between processes and between restarts of one. `api`: while it is away one asks for all whether it is
    back, and who campaigns waits for that."""

    def __init__(
        self, kube: Kube, settings: LeaseSettings, *, identity: str, clock: Clock, api: ApiServer | None = None
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._identity = identity
        self._clock = clock
        self._api = api
        self._seen: tuple[str, str, str] | None = None
        self._seen_at = float("-inf")
        self._trouble = Trouble()
        self._lost_by = ""

    async def lead(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Never:
        """Runs `work` whenever the lease is ours; cancels it (and waits for its end) before the lease can lapse. An
        exception of the work releases the lease and is raised."""
        while True:
            renewed_at = await self._acquire()
            log.info("bridge_leads", identity=self._identity, lease=self._settings.name)
            await self._hold(work, renewed_at)
            log.warning(
                "bridge_lost_its_lease", identity=self._identity, lease=self._settings.name, error=self._lost_by
            )

    async def _acquire(self) -> float:
        """The monotonic second in which the request that won was sent."""
        backoff = Backoff(self._clock, first=self._settings.poll, last=LONGEST_POLL)
        while True:
            started = self._clock.monotonic()
            try:
                taken = await self._before(started + self._settings.renew_deadline, self._try_to_take())
            except (GryviaError, TimeoutError) as error:
                self._note(error)
                await backoff.wait()
                if self._api is not None:
                    await self._api.answers()
                continue
            self._trouble.over()
            if taken:
                return started
            await self._clock.sleep(self._settings.poll)

    async def _hold(self, work: Callable[[], Coroutine[Any, Any, None]], renewed_at: float) -> None:
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew_until_lost(renewed_at))
        lost = False
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            lost = renewing.done() and not working.done()
        finally:
            for task in (working, renewing):
                task.cancel()
            await asyncio.wait((working, renewing))
            if not lost:
                await self._release()
        if not working.cancelled():
            working.result()
        if not renewing.cancelled():
            renewing.result()

    async def _renew_until_lost(self, renewed_at: float) -> None:
        while True:
            await self._clock.sleep(self._settings.retry)
            deadline = renewed_at + self._settings.renew_deadline
            started = self._clock.monotonic()
            if started >= deadline:
                self._lost_by = self._trouble.last or "not renewed in time"
                return
            try:
                if not await self._before(deadline, self._renew()):
                    self._lost_by = "somebody else holds it"
                    return
                renewed_at = started
                self._trouble.over()
            except TimeoutError:
                self._lost_by = "no answer of the API server until the renew deadline"
                return
            except GryviaError as error:
                self._note(error)

    async def _try_to_take(self) -> bool:
        settings = self._settings
        try:
            lease = await self._kube.get(LEASES, settings.namespace, settings.name)
        except Gone:
            await self._kube.create(LEASES, self._new_lease())
            return True
        spec = lease.get("spec") or {}
        if not self._may_take(spec):
            return False
        transitions = int(spec.get("leaseTransitions") or 0) + 1
        await self._write(lease, {"acquireTime": self._now(), "leaseTransitions": transitions})
        return True

    def _may_take(self, spec: Json) -> bool:
        holder = str(spec.get("holderIdentity") or "")
        record = (holder, str(spec.get("renewTime")), str(spec.get("leaseTransitions")))
        now = self._clock.monotonic()
        if record != self._seen:
            self._seen, self._seen_at = record, now
        # Our own, kept through an outage: the work ended before this was asked, so there is nobody to wait for.
        free = holder in ("", self._identity)
        return free or now - self._seen_at > float(spec.get("leaseDurationSeconds") or self._settings.duration)

    async def _renew(self) -> bool:
        lease = await self._kube.get(LEASES, self._settings.namespace, self._settings.name)
        if (lease.get("spec") or {}).get("holderIdentity") != self._identity:
            return False
        await self._write(lease, {})
        return True

    async def _release(self) -> None:
        """So that the next one need not wait; best effort."""
        try:
            async with asyncio.timeout(_RELEASE_LIMIT):
                lease = await self._kube.get(LEASES, self._settings.namespace, self._settings.name)
                if (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                    await self._write(lease, {"holderIdentity": "", "leaseDurationSeconds": 1})
        except (GryviaError, TimeoutError) as error:
            log.info("bridge_lease_not_released", error=str(error))

    async def _write(self, lease: Json, changes: Json) -> None:
        """Compare-and-set on the lease as it was read."""
        settings = self._settings
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": settings.duration,
            "renewTime": self._now(),
            **changes,
        }
        body = {"metadata": {"resourceVersion": lease["metadata"]["resourceVersion"]}, "spec": spec}
        await self._kube.patch(LEASES, settings.namespace, settings.name, body, manager="gryvia-bridge")

    def _new_lease(self) -> Json:
        settings = self._settings
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"namespace": settings.namespace, "name": settings.name},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": settings.duration,
                "acquireTime": self._now(),
                "renewTime": self._now(),
                "leaseTransitions": 0,
            },
        }

    def _now(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _note(self, error: BaseException) -> None:
        if not isinstance(error, Conflict) and self._trouble.is_news(error):
            log.warning("bridge_lease_request_failed", error=str(error) or "no answer in time")

    async def _before(self, deadline: float, request: Awaitable[T]) -> T:
        """The answer, or TimeoutError at `deadline` by our clock (virtual in tests, so not asyncio.timeout)."""
        asking = asyncio.ensure_future(request)
        timer = asyncio.ensure_future(self._clock.sleep(max(0.0, deadline - self._clock.monotonic())))
        try:
            await asyncio.wait((asking, timer), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise TimeoutError
        finally:
            asking.cancel()
            timer.cancel()
            await asyncio.wait((asking, timer))
