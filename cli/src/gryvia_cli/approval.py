"""A person's answer to an approval step, or to a promotion that waits for one: an annotation with who, what and why.

The services read it; who may answer is the object's `approvers`, asked for here already so that a person hears it at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Literal

from gryvia_cli.identity import who_am_i
from gryvia_common.errors import Terminal
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, annotations_of
from gryvia_common.kube.resources import GROUP

Decision = Literal["Approved", "Rejected"]
APPROVAL = f"{GROUP}/approval"
LONGEST_COMMENT = 500
"""What the services keep of one."""


async def approver(kube: Kube) -> str:
    """The name to write down."""
    name, sure = await who_am_i(kube)
    if not sure:
        print(f"gryvia: the API server does not say who you are; writing down the login name {name}", file=sys.stderr)
    return name


def annotation_of(step: str) -> str:
    """Of a workflow's step."""
    return f"{APPROVAL}-{step}"


def answer(key: str, decision: Decision, by: str, comment: str) -> Json:
    """The patch. Terminal for a comment that is too long for an annotation others read."""
    if len(comment) > LONGEST_COMMENT:
        raise Terminal(
            f"--comment has {len(comment)} characters, at most {LONGEST_COMMENT}; write the rest where it can be linked to",
            reason="Usage",
        )
    said = {"decision": decision, "by": by} | ({"comment": comment} if comment else {})
    return {"metadata": {"annotations": {key: json.dumps(said, ensure_ascii=False)}}}


def may_answer(by: str, approvers: Sequence[str] | None, what: str) -> None:
    """Terminal when somebody else has to."""
    if approvers and by not in approvers:
        raise Terminal(f"you are {by}; {what} is for {', '.join(approvers)} to answer", reason="Forbidden")


def earlier(obj: Json, key: str) -> str:
    """`Approved by ada` if there is an answer already, else empty."""
    text = annotations_of(obj).get(key)
    if not text:
        return ""
    try:
        said = json.loads(text)
        return f"{said['decision']} by {said['by']}"
    except (ValueError, KeyError, TypeError):
        return ""
