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

    @property
    def moment(self) -> tuple[str, str]:
        return self.second, self.fraction

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
    alike = 0
    for row in rows:
        match = _LINE.match(row)
        if match is None:
            continue
        second, fraction, zone = match[1].decode(), (match[2] or b"").decode().ljust(9, "0"), match[3].decode()
        if cursor is not None and (second, fraction) < cursor.moment:
            continue
        known = cursor is not None and (second, fraction) == cursor.moment
        alike = alike + 1 if known else 1
        if cursor is not None and known and alike <= cursor.count:
            continue
        cursor = Cursor(second, fraction, zone, alike)
        lines.append(row[match.end() :].decode(errors="replace"))
    return lines, cursor
