"""A run as values: one Task a step, with one more for each item of a step with withItems; read from the status and written back.

A task is the whole memory of what it went through, so every pass goes on from the status alone. Names of children follow from it:
`<workflow>-<step>[-i<item>][-n<run>][-r<attempt>]`, where `attempt` counts everything that was ever started (retries, reruns of
what the infrastructure lost, resumed runs), so no name is used twice; `retries` counts what the user's number is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gryvia_common.kinds.workflow import (
    STEP_ENDED,
    Approval,
    GryviaWorkflowSpec,
    GryviaWorkflowStatus,
    ItemStatus,
    StepPhase,
    StepStatus,
)
from gryvia_common.kube.children import child_name
from gryvia_common.runtime.world import Object

Workflow = Object[GryviaWorkflowSpec, GryviaWorkflowStatus]

LONGEST_MESSAGE = 200
LONGEST_ITEM_MESSAGE = 80


@dataclass(frozen=True, slots=True)
class Task:
    """A step, or the item `index` of one. `started` and `ended` are RFC 3339 or empty; Pending with `ended`: an attempt has failed
    then, and another follows. `outputs` are as in the status: short ones whole, of long ones the beginning. `attempt` of a step
    with withItems: the first one of its items."""

    step: str
    index: int | None = None
    phase: StepPhase = "Pending"
    child: str = ""
    attempt: int = 0
    retries: int = 0
    lost: int = 0
    started: str = ""
    ended: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    outputs_in: str = ""
    message: str = ""
    approval: Approval | None = None
    items: tuple[Task, ...] = ()

    @property
    def over(self) -> bool:
        return self.phase in STEP_ENDED

    @property
    def title(self) -> str:
        return self.step if self.index is None else f"{self.step} (item {self.index})"


def child_of(workflow: Workflow, run: int, task: Task, *suffix: str) -> str:
    """The name of the child of the task's attempt."""
    item = "" if task.index is None else f"i{task.index}"
    attempt = f"r{task.attempt}" if task.attempt else ""
    return child_name(workflow.name, task.step, item, *suffix, f"n{run}" if run else "", attempt)


def read_tasks(workflow: Workflow) -> dict[str, Task]:
    """A task for each step of the spec, as the status has it; Pending what the status does not know."""
    known = {status.name: _task(status) for status in workflow.status.step_statuses or ()}
    return {step.name: known.get(step.name) or Task(step.name) for step in workflow.spec.steps}


def to_status(task: Task) -> StepStatus:
    items = [ItemStatus(index=item.index or 0, **_fields(item, LONGEST_ITEM_MESSAGE)) for item in task.items]
    return StepStatus(name=task.step, approval=task.approval, items=items or None, **_fields(task, LONGEST_MESSAGE))


def _task(status: StepStatus) -> Task:
    items = tuple(Task(status.name, item.index, **_read(item)) for item in status.items or ())
    return Task(status.name, items=items, approval=status.approval, **_read(status))


def _read(status: StepStatus | ItemStatus) -> dict[str, Any]:
    return {
        "phase": status.phase,
        "child": status.job_name or "",
        "attempt": status.attempt or 0,
        "retries": status.retries_attempted or 0,
        "lost": status.times_lost or 0,
        "started": status.start_time or "",
        "ended": status.completion_time or "",
        "outputs": status.outputs or {},
        "outputs_in": status.outputs_in or "",
        "message": status.message or "",
    }


def _fields(task: Task, longest: int) -> dict[str, Any]:
    return {
        "phase": task.phase,
        "job_name": task.child or None,
        "attempt": task.attempt or None,
        "retries_attempted": task.retries or None,
        "times_lost": task.lost or None,
        "start_time": task.started or None,
        "completion_time": task.ended or None,
        "outputs": dict(task.outputs) or None,
        "outputs_in": task.outputs_in or None,
        "message": cut(task.message, longest) or None,
    }


def cut(text: str, longest: int) -> str:
    """At most so many bytes: the status of many steps must stay small in any script."""
    whole = text.encode()
    return text if len(whole) <= longest else whole[: longest - 3].decode(errors="ignore") + "…"
