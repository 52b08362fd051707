"""Conditions as the API conventions want them: keyed by type, and lastTransitionTime moves only when the status flips.

Pure, so that a decide function which says the same thing twice produces the same JSON and causes no write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

from gryvia_common.kinds.model import Condition

ConditionStatus = Literal["True", "False", "Unknown"]
Said = tuple[str, ConditionStatus, str, str]
"""Type, status, reason and message."""


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with seconds, as metav1.Time is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> datetime:
    """The moment of an RFC 3339 text, with a zone. ValueError when it is none."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def find_condition(conditions: Sequence[Condition] | None, type: str) -> Condition | None:
    return next((condition for condition in conditions or () if condition.type == type), None)


def set_condition(
    conditions: Sequence[Condition] | None,
    type: str,
    status: ConditionStatus,
    reason: str,
    message: str = "",
    *,
    now: datetime,
    generation: int | None = None,
) -> list[Condition]:
    """The conditions with this one set; the others, also other controllers' ones, stay as they are and where they are."""
    before = find_condition(conditions, type)
    since = before.last_transition_time if before and before.status == status else timestamp(now)
    condition = Condition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=generation,
    )
    if before is None:
        return [*(conditions or ()), condition]
    return [condition if c.type == type else c for c in conditions or ()]


def drop_condition(conditions: Sequence[Condition] | None, type: str) -> list[Condition]:
    return [condition for condition in conditions or () if condition.type != type]


def set_conditions(
    conditions: Sequence[Condition] | None,
    said: Iterable[Said],
    *,
    passing: Iterable[str] = (),
    now: datetime,
    generation: int | None = None,
) -> list[Condition]:
    """All of these set, and those of the `passing` types dropped of which nothing is said any more."""
    found = list(conditions or ())
    gone = set(passing)
    for type, status, reason, message in said:
        found = set_condition(found, type, status, reason, message, now=now, generation=generation)
        gone.discard(type)
    return [condition for condition in found if condition.type not in gone]
