"""Where leases are kept: heartbeats that expire, claims that are compared and set.

Two KV buckets (see streams). `gryvia-members` has one key a replica, `<service>.<replica>.<incarnation>`: who lives is read
off the list of subjects in one request, answered by the stream's leader. Who leaves adds a key `….left`, which outlives its
heartbeat: removing the heartbeat instead would need the right to purge everybody's. `gryvia-claims` holds one document a
service. A poke over core NATS says that something changed; losing it costs one round of waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import orjson
from nats.aio.msg import Msg

from gryvia_common.bus.connection import Bus
from gryvia_common.bus.jetstream import call, last_message, stream_state
from gryvia_common.bus.link import Link
from gryvia_common.bus.streams import CLAIMS_STREAM, MEMBERS_STREAM, claims_subject, members_subject
from gryvia_common.bus.subjects import poke_subject
from gryvia_common.errors import Conflict, Gone, Transient

_LEFT = "left"


class LeaseStore(Protocol):
    """Every method raises Transient when its outcome is unknown or nothing can be stored, and Gone when a bucket is missing."""

    async def renew(self, member: str) -> None:
        """A heartbeat that counts for the TTL from now."""

    async def leave(self, member: str) -> None:
        """The heartbeat is gone at once."""

    async def live(self) -> frozenset[str]:
        """Everybody whose heartbeat counts."""

    async def claims(self) -> tuple[dict[int, str], int]:
        """The document and its revision; empty and 0 when there is none."""

    async def write_claims(self, claims: dict[int, str], revision: int) -> int:
        """The new revision. Raises Conflict when `revision` is not the present one."""

    async def poke(self) -> None:
        """Tells the other replicas of the service to look."""

    async def listen(self, poked: Callable[[], None]) -> None:
        """Calls `poked` for each poke and after each outage, from now on. Calling it again costs nothing."""


class NatsLeases:
    """The LeaseStore of one service on NATS."""

    def __init__(self, bus: Bus, service: str) -> None:
        self._link: Link = bus.link
        self._members = members_subject(service)
        self._claims = claims_subject(service)
        self._poke_subject = poke_subject(service)
        self._listening = 0

    async def renew(self, member: str) -> None:
        await self._put(f"{self._members}.{_member_key(member)}", b"", None)

    async def leave(self, member: str) -> None:
        await self._put(f"{self._members}.{_member_key(member)}.{_LEFT}", b"", None)

    async def live(self) -> frozenset[str]:
        info = await call(self._link, f"STREAM.INFO.{MEMBERS_STREAM}", {"subjects_filter": f"{self._members}.>"})
        subjects = info["state"].get("subjects") or {}
        left = {subject.removesuffix(f".{_LEFT}") for subject in subjects if subject.endswith(f".{_LEFT}")}
        alive = (subject for subject in subjects if subject not in left and not subject.endswith(f".{_LEFT}"))
        return frozenset("/".join(subject.split(".")[-2:]) for subject in alive)

    async def claims(self) -> tuple[dict[int, str], int]:
        try:
            stored = await last_message(self._link, CLAIMS_STREAM, self._claims)
        except Gone:
            await stream_state(self._link, CLAIMS_STREAM)  # raises Gone when it is the bucket that is missing
            return {}, 0
        return {int(part): holder for part, holder in orjson.loads(stored.body).items()}, stored.sequence

    async def write_claims(self, claims: dict[int, str], revision: int) -> int:
        body = orjson.dumps({str(part): claims[part] for part in sorted(claims)})
        return await self._put(self._claims, body, revision)

    async def poke(self) -> None:
        await self._link.publish(self._poke_subject)

    async def listen(self, poked: Callable[[], None]) -> None:
        if self._listening == self._link.generation:
            return
        if self._listening == 0:
            self._link.on_connected(poked)

        async def receive(_: Msg) -> None:
            poked()

        await self._link.subscribe(self._poke_subject, receive)
        self._listening = self._link.generation

    async def _put(self, subject: str, body: bytes, revision: int | None) -> int:
        headers = None if revision is None else {"Nats-Expected-Last-Subject-Sequence": str(revision)}
        answer = orjson.loads((await self._link.request(subject, body, headers)).data)
        if "error" not in answer:
            return int(answer["seq"])
        if answer["error"].get("err_code") in (10071, 10164):
            raise Conflict(f"{subject} is not at revision {revision} any more")
        raise Transient(f"{subject}: {answer['error'].get('description')}")


def _member_key(member: str) -> str:
    """`<replica>/<incarnation>`, both free of what NATS reads as its own."""
    replica, _, incarnation = member.partition("/")
    return f"{replica}.{incarnation}"
