"""Durations as the contract writes them: 90m, 24h, 7d, 1d12h (timeouts of jobs, windows of analyses).

Whole numbers of days, hours, minutes and seconds in this order, each at most once, and nothing else: `1.5h` and `90` are as
likely a mistake as they are meant, and a limit that was guessed ends a run.
"""

from __future__ import annotations

import re

UNITS = (86400, 3600, 60, 1)
_PARTS = re.compile(r"(?:([0-9]{1,6})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")


def parse_duration(text: str) -> int | None:
    """Seconds; None when the text is not exactly a duration above zero."""
    match = _PARTS.fullmatch(text)
    if match is None:
        return None
    return sum(int(part or 0) * unit for part, unit in zip(match.groups(), UNITS, strict=True)) or None
