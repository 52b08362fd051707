"""The answer for an object whose spec does not parse, for kinds whose status has phase, message and completionTime.

What has not begun has failed, until the spec changes; what is under way goes on with what it has and waits for a spec that
parses; what has ended is left alone. What to change stands in the message and in the condition SpecValid.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError

from gryvia_common.kinds.conditions import set_condition, timestamp
from gryvia_common.kinds.kind import Kind
from gryvia_common.kinds.model import Spec, Status
from gryvia_common.kube.objects import Json, is_deleting, metadata
from gryvia_common.runtime.plan import Plan

S = TypeVar("S", bound=Spec)
T = TypeVar("T", bound=Status)

FINAL = ("Succeeded", "Failed")


def unparsed(kind: Kind[S, T], begun: Callable[[T], bool], raw: Json, message: str, now: datetime) -> Plan:
    """`message`: what is wrong with the spec."""
    status: Json = raw.get("status") or {}
    try:
        before = kind.status.model_validate(status)
    except ValidationError:
        before, status = kind.status(), {}
    under_way = begun(before)
    if is_deleting(raw) or (under_way and status.get("phase") in FINAL):
        return Plan()
    generation = int(metadata(raw).get("generation") or 1)
    found = set_condition(before.conditions, "SpecValid", "False", "Invalid", message, now=now, generation=generation)
    changes: dict[str, object] = {"message": message, "conditions": found, "observed_generation": generation}
    if not under_way:
        changes |= {"phase": "Failed", "completion_time": status.get("completionTime") or timestamp(now)}
    return Plan(status=before.model_copy(update=changes))
