"""The status of a workflow: the tasks of its run, counts, conditions, and the message for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gryvia_common.kinds.conditions import Said, set_conditions
from gryvia_common.kinds.workflow import Cancellation, GryviaWorkflowStatus, WorkflowPhase
from gryvia_pipelines.validation import Checked
from gryvia_workflow.run import Task, Workflow, to_status

SHOWN_FAILURES = 3


@dataclass(frozen=True, slots=True)
class Run:
    """The run that the status is about, empty before the first. `started` and `ended` are RFC 3339 or empty."""

    number: int = 0
    tasks: Mapping[str, Task] = field(default_factory=dict)
    started: str = ""
    ended: str = ""
    scheduled_for: str = ""
    resumed_by: str = ""
    requested: str = ""
    cancelled: Cancellation | None = None

    @property
    def outcome(self) -> str:
        """Succeeded or Failed; empty before the start and while something is pending or running."""
        if not self.started or not all(task.over for task in self.tasks.values()):
            return ""
        failed = self.cancelled is not None or any(task.phase == "Failed" for task in self.tasks.values())
        return "Failed" if failed else "Succeeded"

    @property
    def cancelled_words(self) -> str:
        """Empty unless it was."""
        if self.cancelled is None:
            return ""
        return f"cancelled by {self.cancelled.by}" if self.cancelled.by else "cancelled"

    @property
    def failures(self) -> str:
        """That the run was cancelled, which steps failed for other reasons, and why."""
        words = self.cancelled_words
        failed = [task for task in self.tasks.values() if task.phase == "Failed"]
        failed = [task for task in failed if not words or words not in task.message]
        said = [f"step {task.step}: {task.message or 'failed'}" for task in failed[:SHOWN_FAILURES]]
        more = len(failed) - SHOWN_FAILURES
        return "; ".join(([words] if words else []) + said + ([f"and {more} more"] if more > 0 else []))


def status_of(
    workflow: Workflow,
    checked: Checked,
    run: Run,
    phase: WorkflowPhase,
    message: str,
    now: datetime,
    schedule: Mapping[str, object] | None = None,
) -> GryviaWorkflowStatus:
    """The whole status. `schedule`: the fields about the schedule; None leaves them as they are."""
    before = workflow.status
    if schedule is None:
        kept = ("next_schedule_time", "missed_runs", "pending_runs")
        schedule = {name: getattr(before, name) for name in kept} if workflow.spec.schedule else {}
    steps = [to_status(task) for task in run.tasks.values()]
    fields: dict[str, object] = {
        "phase": phase,
        "message": message or None,
        "observed_generation": workflow.generation,
        "conditions": set_conditions(
            before.conditions,
            _conditions(checked, run, phase),
            passing=("SpecValid", "SpecPending", "FieldsIgnored", "StepsRunning", "WorkflowComplete"),
            now=now,
            generation=workflow.generation,
        ),
        "step_statuses": steps or None,
        "steps_total": len(workflow.spec.steps),
        "steps_completed": sum(task.over for task in run.tasks.values()) if steps else None,
        "start_time": run.started or None,
        "completion_time": run.ended or None,
        "run": run.number,
        "last_schedule_time": run.scheduled_for or None,
        "resumed_by": run.resumed_by or None,
        "run_requested": run.requested or None,
        "cancelled": run.cancelled,
        **schedule,
    }
    return GryviaWorkflowStatus.model_validate(fields)


def validity(checked: Checked) -> Iterator[Said]:
    if checked.problems:
        yield "DAGValid", "False", "Invalid", checked.problems
    else:
        yield "DAGValid", "True", "Valid", "The graph of steps can be run."


def _conditions(checked: Checked, run: Run, phase: str) -> Iterator[Said]:
    yield from validity(checked)
    if checked.ignored:
        yield "FieldsIgnored", "True", "WithoutEffect", "; ".join(checked.ignored)[:2000]
    if phase == "Running":
        yield "StepsRunning", "True", "StepsActive", "Steps are run as their dependencies end."
    elif run.started:
        yield "StepsRunning", "False", "Done", "The run has ended."
    if run.started and phase == "Running":
        yield "WorkflowComplete", "False", "Running", "The run is in progress."
    elif run.started:
        yield "WorkflowComplete", "True", run.outcome or "Failed", run.failures
