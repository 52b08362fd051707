"""What the job service needs I/O for: reading on in the log of one pod.

The runner keeps its place between runs in the value it returns, so a log is read once, however long it gets; only the
first read (also the first after a restart) goes back, at most 20,000 lines. A read that fails is part of the answer, not an
exception: how often the last read was tried is what ends the wait for a log that cannot be had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from gryvia_common.errors import Gone, Terminal, Transient
from gryvia_common.kube.objects import key_of
from gryvia_common.runtime.controller import ActionContext
from gryvia_jobs.metrics import Reading, read_lines
from gryvia_jobs.tail import Cursor, new_lines

READ_LOG = "read-log"
FIRST_LINES = 20_000
ANSWER_LIMIT = 1024 * 1024
MOST_ANSWERS = 8
THREAD_FROM = 64 * 1024


@dataclass(frozen=True, slots=True)
class LogReading:
    """`complete`: read to the end after the container had ended. `failures`: failed tries of that last read."""

    reading: Reading = field(default_factory=Reading)
    cursor: Cursor | None = None
    complete: bool = False
    failures: int = 0
    error: str = ""


async def read_log(context: ActionContext, arguments: Mapping[str, object]) -> LogReading:
    """Arguments: pod, container, ended (whether the container has), patterns (name to regular expression)."""
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
