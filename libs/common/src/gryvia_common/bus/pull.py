"""An ordered read of a stream: every message once, in order, or an error that says it has to be taken up again.

One ephemeral pull consumer without acknowledgements. Its own pull requests instead of nats-py's `fetch`: a fetch
survives neither a killed server nor a cancelled task, needs a round trip for each empty batch, and cannot say that
the stream's end is reached. Invariant: messages are handed on in sequence without a gap (the consumer's own numbering
proves it), and the consumer is deleted on the way out; if that is not possible the server removes it after
`inactive_threshold`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_hex
from typing import Never

import orjson
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from gryvia_common.bus.jetstream import call
from gryvia_common.bus.link import Link
from gryvia_common.errors import GryviaError, Transient
from gryvia_common.tasks import end_task

_BATCH = 1000
_BATCH_BYTES = 8 << 20
_EXPIRES = 5.0
_GRACE = 2.0
_INACTIVE = 30.0
_GOODBYE = 1.0
_PULL_ENDED = ("Request Timeout", "Batch Completed", "Message Size Exceeds MaxBytes")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message of a stream. `pending`: how many more are waiting. `stamp`: when it was stored, in nanoseconds."""

    subject: str
    headers: Mapping[str, str]
    body: bytes
    sequence: int
    pending: int
    stamp: int


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin: everything (the default), only what is new, from a sequence, or from a time."""

    sequence: int = 0
    new: bool = False
    time: datetime | None = None


async def consume(
    link: Link,
    stream: str,
    filters: Sequence[str],
    start: Start,
    receive: Callable[[Delivery], None],
    caught_up: Callable[[], None],
    *,
    headers_only: bool = False,
) -> Never:
    """Hands every message to `receive`, and calls `caught_up` once, when what was there at the start has been handed
    on. Runs until cancelled; raises Transient (or Gone: no such stream) when it has to be begun again. What `receive`
    raises is raised here."""
    reader = _Reader(link, stream, receive, caught_up)
    await reader.run(_config(link, filters, start, headers_only=headers_only))


async def read_to_end(
    link: Link, stream: str, filters: Sequence[str], *, headers_only: bool = False
) -> AsyncIterator[Delivery]:
    """What is in the stream now, each message once, in order. Raises Transient (or Gone) when it breaks off."""
    batch: list[Delivery] = []
    done = asyncio.Event()
    arrived = asyncio.Event()

    def receive(delivery: Delivery) -> None:
        if not done.is_set():
            batch.append(delivery)
            arrived.set()

    def caught_up() -> None:
        done.set()
        arrived.set()

    task = asyncio.create_task(consume(link, stream, filters, Start(), receive, caught_up, headers_only=headers_only))
    task.add_done_callback(lambda _: arrived.set())
    try:
        while True:
            await arrived.wait()
            arrived.clear()
            ready, batch[:] = batch[:], []
            for delivery in ready:
                yield delivery
            if done.is_set() and not batch:
                return
            if task.done():
                task.result()
    finally:
        await end_task(task)


def _config(link: Link, filters: Sequence[str], start: Start, *, headers_only: bool) -> ConsumerConfig:
    if start.new:
        policy = DeliverPolicy.NEW
    elif start.time is not None:
        policy = DeliverPolicy.BY_START_TIME
    elif start.sequence:
        policy = DeliverPolicy.BY_START_SEQUENCE
    else:
        policy = DeliverPolicy.ALL
    return ConsumerConfig(
        name=f"{''.join(c if c.isalnum() else '-' for c in link.name)}-{token_hex(6)}",
        deliver_policy=policy,
        opt_start_seq=start.sequence or None,
        opt_start_time=start.time,
        ack_policy=AckPolicy.NONE,
        filter_subjects=list(filters),
        headers_only=headers_only or None,
        inactive_threshold=_INACTIVE,
        mem_storage=True,
        num_replicas=1,
    )


@dataclass
class _Reader:
    """The life of one consumer."""

    link: Link
    stream: str
    receive: Callable[[Delivery], None]
    caught_up: Callable[[], None]
    consumer: str = ""
    inbox: str = ""
    expected: int = 1
    taken: int = 0
    initial: int = 0
    behind: bool = True
    heard: float = 0.0
    failed: asyncio.Future[Never] = field(init=False)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, config: ConsumerConfig) -> Never:
        loop = asyncio.get_running_loop()
        self.failed = loop.create_future()
        self.consumer = str(config.name)
        epoch = self.link.epoch
        self.inbox = self.link.new_inbox()
        subscription = await self.link.subscribe(self.inbox, self._message)
        lost = asyncio.create_task(self.link.until_lost(epoch))
        lost.add_done_callback(self._on_lost)
        try:
            await self._create(config)
            await self._pull_for_ever(loop)
        finally:
            lost.cancel()
            if not self.failed.cancel():
                self.failed.exception()  # seen, or overtaken by what ends us
            with contextlib.suppress(NatsError):
                await subscription.unsubscribe()
            await self._goodbye(epoch)

    async def _create(self, config: ConsumerConfig) -> None:
        wanted = {key: value for key, value in config.as_dict().items() if value is not None}
        info = await call(
            self.link,
            f"CONSUMER.CREATE.{self.stream}.{self.consumer}",
            {"stream_name": self.stream, "config": wanted, "action": "create"},
        )
        self.initial = int(info["num_pending"])
        if self.initial == 0:
            self._reached_end()

    async def _pull_for_ever(self, loop: asyncio.AbstractEventLoop) -> Never:
        request = orjson.dumps(
            {"batch": _BATCH, "max_bytes": max(_BATCH_BYTES, 2 * self.link.max_payload), "expires": int(_EXPIRES * 1e9)}
        )
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.stream}.{self.consumer}"
        while True:
            self.taken = 0
            self.ended.clear()
            self.heard = loop.time()
            await self.link.publish(subject, request, reply=self.inbox)
            while not self.ended.is_set():
                await self._one_of_ended_or_failed()
                if not self.ended.is_set() and loop.time() - self.heard > _EXPIRES + _GRACE:
                    raise Transient(f"consumer {self.consumer} of {self.stream} is silent")

    async def _one_of_ended_or_failed(self) -> None:
        waiter = asyncio.create_task(self.ended.wait())
        try:
            await asyncio.wait((waiter, self.failed), timeout=_EXPIRES + _GRACE, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        if self.failed.done():
            self.failed.result()

    async def _message(self, message: Msg) -> None:
        try:
            status = (message.headers or {}).get("Status")
            if status is not None and not message.reply.startswith("$JS.ACK."):
                self._status(status, (message.headers or {}).get("Description", ""))
            else:
                self._deliver(message)
        except Exception as error:  # noqa: BLE001  the reader's owner gets it, not the client's error callback
            self._fail(error)

    def _deliver(self, message: Msg) -> None:
        if self.failed.done():
            return
        tokens = message.reply.split(".")
        # $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<delivered>.<stream seq>.<consumer
        # seq>.<time>.<pending>[.<random>]
        place = 5 if len(tokens) < 11 else 7
        sequence, number, stamp, pending = (int(token) for token in tokens[place : place + 4])
        if number != self.expected:
            raise Transient(f"message {number} of consumer {self.consumer} came instead of {self.expected}")
        self.expected += 1
        self.taken += 1
        self.heard = asyncio.get_running_loop().time()
        self.receive(Delivery(message.subject, message.headers or {}, message.data, sequence, pending, stamp))
        if self.behind and (pending == 0 or number >= self.initial):
            self._reached_end()
        if self.taken == _BATCH:
            self.ended.set()

    def _status(self, status: str, description: str) -> None:
        if status == "408" or (status == "409" and description.startswith(_PULL_ENDED)):
            # What was pending at the start may have expired before it was delivered; an empty pull proves that
            # nothing is left.
            if self.behind and self.taken == 0:
                self._reached_end()
            self.ended.set()
        elif status != "100":
            raise Transient(f"consumer {self.consumer} of {self.stream} ended: {status} {description}")

    def _reached_end(self) -> None:
        self.behind = False
        self.caught_up()

    def _on_lost(self, waiter: asyncio.Task[None]) -> None:
        if not waiter.cancelled():
            self._fail(Transient("the connection to NATS was lost"))

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    async def _goodbye(self, epoch: int) -> None:
        """Deletes the consumer, unless the connection is gone: then the server does it."""
        if self.link.connected and self.link.epoch == epoch:
            with contextlib.suppress(GryviaError, TimeoutError):
                async with asyncio.timeout(_GOODBYE):
                    await call(self.link, f"CONSUMER.DELETE.{self.stream}.{self.consumer}")
