"""A workflow's steps as a person sees them: the spec's graph with what the status says of each step.

Manifests may be wrong, and wrong graphs are drawn too: `ordered` sets apart the steps that wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gryvia_cli.output import duration
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.workflow import BLOCKS, STEP_ENDED
from gryvia_common.kube.objects import Json


@dataclass(frozen=True, slots=True)
class StepView:
    """`after` are the names it waits for, of them `unknown` those that are no steps; `state` is its entry in the status, empty before
    there is one."""

    name: str
    type: str
    after: tuple[str, ...]
    unknown: frozenset[str]
    last: bool
    state: Mapping[str, Any]

    @property
    def phase(self) -> str:
        return str(self.state.get("phase") or "")

    def time(self, now: datetime) -> str:
        """How long it took, or has taken so far; empty before it began."""
        return elapsed(self.state, now)

    @property
    def items_done(self) -> str:
        """`3/5` for a step with items."""
        items = self.state.get("items") or []
        return f"{sum(one.get('phase') in STEP_ENDED for one in items)}/{len(items)}" if items else ""


def step_views(spec: Json, states: Sequence[Json] = ()) -> list[StepView]:
    """In the order of the spec."""
    by_name = {str(state.get("name")): state for state in states}
    steps = [step for step in spec.get("steps") or [] if isinstance(step, dict)]
    names = {str(step.get("name", "")) for step in steps}
    return [
        StepView(
            name=str(step.get("name", "")),
            type=step_type(step),
            after=(after := tuple(dict.fromkeys(map(str, step.get("dependsOn") or [])))),
            unknown=frozenset(after) - names,
            last=bool(step.get("finally")),
            state=by_name.get(str(step.get("name", "")), {}),
        )
        for step in steps
    ]


def step_type(step: Json) -> str:
    return str(step.get("type") or next((type for type, block in BLOCKS.items() if block in step), "approval"))


def elapsed(state: Mapping[str, Any], now: datetime) -> str:
    if not state.get("startTime"):
        return ""
    end = parse_timestamp(state["completionTime"]) if state.get("completionTime") else now
    return duration(max(0, int((end - parse_timestamp(state["startTime"])).total_seconds())))


def ordered(steps: Iterable[StepView]) -> tuple[list[StepView], list[StepView]]:
    """Each step after those it waits for, close to the last of them; and those that cannot be ordered, being in a circle or
    behind one. A name that is no step holds nobody up."""
    steps = list(steps)
    by_name = {step.name: step for step in steps}
    missing = {step.name: {name for name in step.after if name in by_name} for step in steps}
    found: list[StepView] = []
    ready = [step for step in reversed(steps) if not missing[step.name]]
    while ready:
        step = ready.pop()
        found.append(step)
        freed = []
        for other in steps:
            if step.name in missing[other.name]:
                missing[other.name].discard(step.name)
                if not missing[other.name]:
                    freed.append(other)
        ready += reversed(freed)
    names = {step.name for step in found}
    return found, [step for step in steps if step.name not in names]


def depths(steps: Sequence[StepView]) -> dict[str, int]:
    """How many steps are before each, along the longest way. `steps` are ordered."""
    found: dict[str, int] = {}
    for step in steps:
        found[step.name] = 1 + max((found[name] for name in step.after if name in found), default=-1)
    return found
