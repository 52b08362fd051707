"""Following the log of one container: what a decide function learns of it, and the action that reads on.

The runner keeps its place between runs in the value it returns, so a log is read once, however long it gets; only the
first read (also the first after a restart) goes back, at most 20,000 lines. A read that fails is part of the answer, not an
exception: how often the last read was tried is what ends the wait for a log that cannot be had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import cast

from gryvia_common.errors import Gone, Terminal, Transient
from gryvia_common.kube.objects import key_of
from gryvia_common.kube.pods import Pod
from gryvia_common.progress.reports import Reading, read_lines
from gryvia_common.progress.tail import Cursor, new_lines
from gryvia_common.runtime.controller import ActionContext
from gryvia_common.runtime.plan import Action
from gryvia_common.runtime.world import World

READ_LOG = "read-log"
FIRST_LINES = 20_000
ANSWER_LIMIT = 1024 * 1024
MOST_ANSWERS = 8
THREAD_FROM = 64 * 1024
MOST_FAILURES = 3
SOONEST, LATEST, SILENT, SHARE = 1.0, 15.0, 60.0, 0.1
AT_ONCE, RETRY = 0.1, 2.0


@dataclass(frozen=True, slots=True)
class LogReading:
    """`complete`: read to the end after the container had ended. `failures`: failed tries of that last read."""

    reading: Reading = field(default_factory=Reading)
    cursor: Cursor | None = None
    complete: bool = False
    failures: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class LogProgress:
    """`reading` None: nobody has looked yet. `source`: which run of which pod it is of. `action` None: nothing more is to be read.
    `unread`: the container has ended and the end of its log is still to come. `error`: why it never will."""

    reading: Reading | None = None
    source: str = ""
    action: Action | None = None
    unread: bool = False
    error: str = ""


def follow_log(world: World, pod: Pod, patterns: Mapping[str, str], now: datetime) -> LogProgress:
    """What is known of the log of this attempt. The pod is in the object's own namespace; the action goes into the plan."""
    if pod.started_at is None:
        return LogProgress()
    key = f"log/{pod.attempt}"
    seen = world.observation(key)
    log = seen.value if seen and isinstance(seen.value, LogReading) else LogReading()
    error = (seen.error if seen else "") or log.error
    ended = pod.ended and bool(pod.terminated)
    given_up = log.failures >= MOST_FAILURES or bool(seen and seen.error)
    done = ended and (log.complete or given_up)
    if ended:
        # At once after the last look, as somebody waits for the end; with more patience when it failed.
        every = RETRY if log.failures else AT_ONCE
    else:
        # By its age at the last look: one that grew while it is waited for would never quite be over.
        looked = seen.at if seen else now
        every = interval((looked - pod.started_at).total_seconds(), bool(log.reading.values))
    action = Action(
        READ_LOG,
        key,
        {"pod": pod.name, "container": pod.container, "ended": ended, "patterns": patterns},
        every=every,
    )
    return LogProgress(
        reading=log.reading if seen else None,
        source=f"read from the log of pod {pod.name}, run {pod.restarts + 1}" if seen else "",
        action=None if done else action,
        unread=ended and not done,
        error=error if done else "",
    )


def interval(age: float, reports: bool) -> float:
    """Seconds between reads: a tenth of the container's age, so that a short run is followed closely and a long one cheaply,
    and one that has never reported anything more cheaply still."""
    return min(max(age * SHARE, SOONEST), LATEST if reports else SILENT)


async def read_log(context: ActionContext, arguments: Mapping[str, object]) -> LogReading:
    """The runner of READ_LOG. Arguments: pod, container, ended (whether the container has), patterns (name to regular
    expression)."""
    known = context.previous if isinstance(context.previous, LogReading) else LogReading()
    ended = bool(arguments["ended"])
    try:
        for _ in range(MOST_ANSWERS):
            known, cut = await _read_on(context, arguments, known)
            if not cut:
                return replace(known, complete=ended, failures=0, error="")
    except Gone:
        return replace(known, complete=ended, error="the pod and its log are gone")
    except (Transient, Terminal) as error:
        return replace(known, failures=known.failures + 1 if ended else 0, error=str(error))
    # More than MOST_ANSWERS at once: the next run goes on from here.
    return replace(known, failures=0, error="")


async def _read_on(
    context: ActionContext, arguments: Mapping[str, object], known: LogReading
) -> tuple[LogReading, bool]:
    """One answer's worth of log; whether the answer was cut, so that there is more."""
    cursor = known.cursor
    data = await context.kube.logs(
        key_of(context.raw).namespace,
        str(arguments["pod"]),
        container=str(arguments["container"]),
        since_time=cursor.since if cursor else "",
        tail_lines=None if cursor else FIRST_LINES,
        limit_bytes=ANSWER_LIMIT,
        timestamps=True,
    )
    cut = len(data) >= ANSWER_LIMIT
    patterns = cast(Mapping[str, str], arguments["patterns"])
    ended = bool(arguments["ended"])

    def parse() -> tuple[Reading, Cursor | None]:
        lines, behind = new_lines(data, cursor, cut=cut, ended=ended)
        return read_lines(known.reading, lines, patterns), behind

    reading, behind = await asyncio.to_thread(parse) if len(data) > THREAD_FROM else parse()
    if cut and behind == cursor:
        if cursor is None:
            return replace(known, reading=reading), False
        behind = cursor.next_second()
    return replace(known, reading=reading, cursor=behind), cut
