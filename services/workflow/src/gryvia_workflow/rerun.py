"""Running again on request: the annotation gryvia.io/run-requested, any value that has not been acted on.

A request starts the next run at once, also while the schedule is suspended; the schedule goes on as before. During a run it waits
and has one run right after. A run that begins for any other reason meets it, too. Without a schedule an edit alone runs nothing:
the condition SpecPending says so, and what is wrong with the new spec if it cannot run.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from gryvia_common.kinds.conditions import Said, find_condition, set_conditions
from gryvia_common.kinds.workflow import GryviaWorkflowStatus
from gryvia_common.kube.resources import GROUP
from gryvia_common.runtime.plan import Plan, Record
from gryvia_pipelines.validation import Checked
from gryvia_workflow.run import Workflow
from gryvia_workflow.status import validity

ANNOTATION = f"{GROUP}/run-requested"
PENDING = "SpecPending"


def asked(workflow: Workflow) -> str:
    """The annotation's value if nobody has acted on it yet, else empty."""
    value = workflow.annotations.get(ANNOTATION) or ""
    return value if value != (workflow.status.run_requested or "") else ""


def has_ended(workflow: Workflow) -> bool:
    """A workflow without a schedule that has run; it may have had one."""
    status = workflow.status
    return workflow.spec.schedule is None and bool(status.start_time) and status.phase not in (None, "Running")


def changed(workflow: Workflow, checked: Checked, now: datetime) -> Plan:
    """The spec is another one than that of the run that has ended: said, and nothing else of the status touched. A request for a
    spec that cannot run is refused."""
    status, request = workflow.status, asked(workflow)
    edited = status.observed_generation != workflow.generation or find_condition(status.conditions, PENDING) is not None
    conditions = set_conditions(
        status.conditions,
        [*validity(checked), *(_pending(workflow, checked) if edited else ())],
        now=now,
        generation=workflow.generation,
    )
    fields: dict[str, object] = {"observed_generation": workflow.generation, "conditions": conditions}
    if status.phase == "Scheduled":
        # The schedule was taken away: the last run is what stays.
        fields |= {"phase": _end(status), "next_schedule_time": None, "missed_runs": None, "pending_runs": None}
    if request and checked.problems:
        fields["run_requested"] = request
    refused = (refusal(request, checked),) if request and checked.problems else ()
    return Plan(status=status.model_copy(update=fields), record=refused)


def refusal(request: str, checked: Checked) -> Record:
    return Record(
        "RunRefused", f"the run that was asked for ({request[:80]}) cannot begin: {checked.problems}", "Warning"
    )


def _pending(workflow: Workflow, checked: Checked) -> Iterator[Said]:
    if checked.problems:
        said = f"the spec was changed after the run ended and cannot run: {checked.problems}"
        yield PENDING, "True", "Invalid", said
        return
    said = f"the spec was changed after the run ended; `gryvia workflows run {workflow.name}` runs it"
    if _end(workflow.status) == "Failed":
        said += f", `gryvia workflows retry {workflow.name}` goes on with it where the run failed"
    yield PENDING, "True", "Changed", said


def _end(status: GryviaWorkflowStatus) -> str:
    failed = status.cancelled is not None or any(step.phase == "Failed" for step in status.step_statuses or ())
    if status.phase == "Scheduled":
        return "Failed" if failed else "Succeeded"
    return str(status.phase)
