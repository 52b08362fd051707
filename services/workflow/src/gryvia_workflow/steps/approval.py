"""An approval step: it waits for the annotation gryvia.io/approval-<step> on the workflow.

`{"decision": "Approved" | "Rejected", "by": "<who>", "comment": "..."}`. That `by` is who it says is the cluster's to enforce (an
admission policy); who may answer is `approvers`. An answer that is in the status is taken off the workflow afterwards, so that it
counts once: the next run of a schedule, or a resumed one, asks again.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.workflow import Approval
from gryvia_common.kube.resources import GROUP
from gryvia_common.runtime.parsing import describe
from gryvia_workflow.attempts import Attempt, End, Progress
from gryvia_workflow.run import cut

ANNOTATION = f"{GROUP}/approval-"


class Answer(BaseModel):
    """The annotation's JSON."""

    model_config = ConfigDict(extra="ignore")

    decision: str
    by: str
    comment: str | None = None


def advance(attempt: Attempt) -> Progress:
    approvers = attempt.step.approvers or []
    key = ANNOTATION + attempt.step.name
    text = attempt.workflow.annotations.get(key)
    asked = f"waits for an approval by {' or '.join(approvers) if approvers else 'anyone'}"
    if text is None:
        return Progress(message=asked)
    try:
        answer = Answer.model_validate_json(text)
    except ValidationError as error:
        return Progress(message=f"{asked}; annotation {key} is not understood: {describe(error, 'annotation')}")
    if approvers and answer.by not in approvers:
        return Progress(message=f'{asked}; "{answer.by[:63]}" is not one of them')
    if answer.decision not in ("Approved", "Rejected"):
        return Progress(message=f'{asked}; "{answer.decision[:40]}" is no decision: write Approved or Rejected')
    approved = answer.decision == "Approved"
    by, comment = cut(answer.by, 253), cut(answer.comment or "", 500) or None
    decision: Literal["Approved", "Rejected"] = "Approved" if approved else "Rejected"
    approval = Approval(decision=decision, by=by, at=timestamp(attempt.now), comment=comment)
    said = f"{decision.lower()} by {by}{': ' if comment else ''}{comment or ''}"
    return Progress(End("succeeded" if approved else "failed", said, final=not approved, approval=approval))
