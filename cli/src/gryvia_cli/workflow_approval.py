"""What a person has asked of a workflow's runs; which approval step they mean, and whether it waits for them."""

from __future__ import annotations

from gryvia_cli.pipeline import StepView
from gryvia_cli.workflow_text import has_ended, phase_of, steps_of, waiting_approvals
from gryvia_common.errors import Terminal
from gryvia_common.kube.objects import Json, annotations_of, metadata
from gryvia_common.kube.resources import GROUP

RETRY = f"{GROUP}/retry-failed"
RUN = f"{GROUP}/run-requested"
CANCEL = f"{GROUP}/cancel"


def asked_for(obj: Json) -> bool:
    """Whether a run, or its going on, is asked for and the service has not acted on it yet."""
    annotations, state = annotations_of(obj), obj.get("status") or {}
    acted = ((RETRY, "resumedBy"), (RUN, "runRequested"))
    return any(annotations.get(key) not in (None, state.get(field)) for key, field in acted)


def asks(obj: Json, step: str | None) -> bool:
    """Whether somebody is asked, or nobody will be: the run has ended, and none is about to begin or to go on."""
    return (has_ended(obj) and not asked_for(obj)) or any(step in (None, one.name) for one in waiting_approvals(obj))


def to_answer(obj: Json, step: str | None) -> StepView:
    """The approval step meant. Terminal when it is none, does not wait, or several do."""
    name, waiting = metadata(obj)["name"], waiting_approvals(obj)
    names = ", ".join(one.name for one in waiting)
    if step is None:
        if len(waiting) == 1:
            return waiting[0]
        many = f"several steps wait: {names}; name one" if waiting else "no step waits for approval"
        raise Terminal(f"workflow {name} ({phase_of(obj)}): {many}", reason="NotWaiting")
    found = next((one for one in steps_of(obj) if one.name == step), None)
    if found is None:
        known = ", ".join(one.name for one in steps_of(obj) if one.type == "approval") or "none"
        raise Terminal(f"workflow {name} has no step {step}; its approval steps: {known}", reason="NotFound")
    if found.type != "approval":
        raise Terminal(f"step {step} of workflow {name} is a {found.type} step, not an approval", reason="NotApproval")
    if found not in waiting:
        done = found.state.get("approval") or {}
        why = f"was {done.get('decision')} by {done.get('by')}" if done else f"is {found.phase or 'Pending'}"
        raise Terminal(f"step {step} of workflow {name} {why}; it does not wait for an answer", reason="NotWaiting")
    return found
