"""What happened between two passes: domain events for the platform, and Events for who runs `kubectl describe`.

Only moves count, so a pass that is repeated after a crash says the same again (the ids are deterministic) and a settled run says
nothing. Describe shows every failed attempt, how the run ended, and when the runs of a schedule began; that one without a schedule
began is as old as the object, and an Event of it would be one request in seven of a short run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gryvia_common.bus.events import (
    DomainEvent,
    WorkflowEvent,
    WorkflowFailed,
    WorkflowStarted,
    WorkflowStep,
    WorkflowSucceeded,
)
from gryvia_common.runtime.plan import Record
from gryvia_workflow.run import Task, Workflow

MOST_RECORDS = 5
_ENDS: Mapping[str, type[WorkflowEvent]] = {"Succeeded": WorkflowSucceeded, "Failed": WorkflowFailed}


@dataclass(frozen=True, slots=True)
class Change:
    """What one pass did to a run. `moves`: tasks before and after. `outcome`: Succeeded or Failed when it ended now. `resumed`: the
    request that resumed it, which tells its second end from its first."""

    workflow: Workflow
    run: int
    moves: Sequence[tuple[Task, Task]]
    began: bool
    outcome: str
    message: str
    resumed: str = ""

    @property
    def mark(self) -> str:
        """Of the request, fit for an id."""
        return hashlib.sha256(self.resumed.encode()).hexdigest()[:10] if self.resumed else ""


def emitted(change: Change) -> Iterator[DomainEvent]:
    if change.began:
        yield _event(change, WorkflowStarted, "")
    for was, task in change.moves:
        yield _step(change, task, was)
    if change.outcome:
        yield _event(change, _ENDS[change.outcome], change.message)


def recorded(change: Change) -> Iterator[Record]:
    title = f"run {change.run}" if change.run else "the run"
    if change.began and change.workflow.spec.schedule is not None:
        yield Record("Started", f"{title} begins, {len(change.workflow.spec.steps)} steps")
    failed = [task for _, task in change.moves if task.phase in ("Failed", "Pending")]
    for task in failed[:MOST_RECORDS]:
        again = task.phase == "Pending"
        said = f"step {task.title}: {task.message}"
        yield Record(
            "StepRetried" if again else "StepFailed", f"{said}; another attempt follows" if again else said, "Warning"
        )
    if len(failed) > MOST_RECORDS:
        yield Record("StepFailed", f"{len(failed) - MOST_RECORDS} more steps failed at the same time", "Warning")
    if change.outcome:
        said = change.message or f"{title} has ended"
        yield Record(change.outcome, said, "Warning" if change.outcome == "Failed" else "Normal")


def invalid(workflow: Workflow, run: int, message: str) -> WorkflowFailed:
    return WorkflowFailed(
        namespace=workflow.namespace,
        name=workflow.name,
        uid=workflow.uid,
        generation=workflow.generation,
        transition=f"{run}/invalid/{workflow.generation}",
        run=run,
        message=message,
    )


def _step(change: Change, task: Task, was: Task) -> WorkflowStep:
    # A failed attempt that is followed by another is known by the attempt that failed.
    attempt = was.attempt if task.phase == "Pending" else task.attempt
    item = "" if task.index is None else f"{task.index}"
    parts = (str(change.run), task.step, item, task.phase, str(attempt), change.mark)
    workflow = change.workflow
    return WorkflowStep(
        namespace=workflow.namespace,
        name=workflow.name,
        uid=workflow.uid,
        generation=workflow.generation,
        transition="/".join(part for part in parts if part),
        run=change.run,
        message=task.message,
        step=task.step,
        item=task.index,
        phase=task.phase,
        attempt=attempt,
        child=task.child,
    )


def _event(change: Change, kind: type[WorkflowEvent], message: str) -> WorkflowEvent:
    workflow = change.workflow
    return kind(
        namespace=workflow.namespace,
        name=workflow.name,
        uid=workflow.uid,
        generation=workflow.generation,
        transition="/".join(part for part in (str(change.run), change.mark) if part),
        run=change.run,
        message=message,
    )
