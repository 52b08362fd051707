"""An event in one line for a person: what kind, and what it says beyond whom it is about. Programs get the whole event."""

from __future__ import annotations

import json

from gryvia_common.bus.subscribe import ReceivedEvent

LONGEST = 60
IDENTITY = frozenset({"namespace", "name", "uid", "generation", "transition"})
"""What the subject says already, or only a program asks for."""
COUNTERS = frozenset({"run", "attempt"})
"""0 is the usual case: no schedule, no retry."""


def short_type(event: ReceivedEvent) -> str:
    """`trial.completed`."""
    return event.type.removeprefix("gryvia.")


def details(event: ReceivedEvent) -> str:
    """`step=train phase=Running`; what is empty is left out."""
    return " ".join(
        f"{key}={_short(value)}"
        for key, value in event.data.items()
        if key not in IDENTITY and value not in ("", None, {}, []) and not (key in COUNTERS and value == 0)
    )


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
