"""Where a log has been read to, so that no line is read twice and none is left out, pure.

The API gives lines since a whole second only, each with the time it was written. So a Cursor is the time of the last line
taken and how many lines of exactly that time there were: what comes back from that second on is skipped up to there. Byte
offsets were rejected: the API knows none, and logs rotate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from gryvia_common.kinds.conditions import parse_timestamp

_LINE = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d) ?")


@dataclass(frozen=True, slots=True)
class Cursor:
    """`second` and `zone` as in the log, `fraction` in nine digits; `count` lines of exactly this time are read."""

    second: str
    fraction: str
    zone: str
    count: int

    @property
    def since(self) -> str:
        """The sinceTime to ask with: whole seconds, as the API takes it."""
        return f"{self.second}{self.zone}"

    def next_second(self) -> Cursor:
        """Past everything of this second: for a second that alone is longer than one answer."""
        moment = parse_timestamp(self.second + "Z") + timedelta(seconds=1)
        return Cursor(moment.strftime("%Y-%m-%dT%H:%M:%S"), "0" * 9, self.zone, 0)


def new_lines(data: bytes, cursor: Cursor | None, *, cut: bool, ended: bool) -> tuple[list[str], Cursor | None]:
    """The lines after the cursor, without their times, and the cursor behind them. `cut`: the answer was ended by its size
    limit. A last line without a newline is still being written and left for later, unless the container has ended."""
    rows = data.split(b"\n")
    unfinished = rows.pop()
    if unfinished and ended and not cut:
        rows.append(unfinished)
    lines = []
    repeated = 0
    for row in rows:
        match = _LINE.match(row)
        if match is None:
            continue
        second, fraction, zone = match[1].decode(), (match[2] or b"").decode().ljust(9, "0"), match[3].decode()
        here = Cursor(second, fraction, zone, 1)
        if cursor is not None:
            if (second, fraction) < (cursor.second, cursor.fraction):
                continue
            if (second, fraction) == (cursor.second, cursor.fraction):
                repeated += 1
                if repeated <= cursor.count:
                    continue
                here = Cursor(second, fraction, zone, repeated)
            else:
                repeated = 1
        else:
            repeated = 1
        cursor = here
        lines.append(row[match.end() :].decode(errors="replace"))
    return lines, cursor
