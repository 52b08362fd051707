"""What the policies of an entry say of its numbers: whether it may go into production, and whether it must leave.

Numbers are compared as the decimals they are written as: 0.3 is better than 0.1 by exactly 0.2. A difference counts when it is
positive, at least minDelta, and, with stderrMetric, larger than the noise: the square root of the sum of the squares of both
standard errors, or the candidate's alone where the production entry has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from gryvia_common.kinds.modelregistry import PromotionPolicy, RollbackPolicy
from gryvia_common.kube.resources import GROUP
from gryvia_common.numbers import parse_decimal

APPROVAL = f"{GROUP}/approval"
Decision = Literal["Promoted", "Rejected", "Waiting"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """`reason` and `message` for the condition PromotionGate."""

    decision: Decision
    reason: str
    message: str
    approved_by: str = ""


BY_HAND = Judgement("Promoted", "ByHand", "spec.stage was set to production")
TAKEN_BACK = Judgement(
    "Waiting",
    "TakenBack",
    "it was taken out of production by hand; it is looked at again when its spec changes, or set its stage to production",
)


def judge(
    policy: PromotionPolicy,
    candidate: Mapping[str, str],
    production: tuple[str, Mapping[str, str]] | None,
    approval: str | None,
) -> Judgement:
    """`candidate`: the entry's metadata; `production`: name and metadata of the family's production entry, None when there is
    none; `approval`: the annotation, as it stands there."""
    found = _compared(policy, candidate, production)
    return _approved(found, approval) if found.decision == "Promoted" and policy.require_approval else found


def breached(policy: RollbackPolicy, metadata: Mapping[str, str]) -> str:
    """The breach in words; empty when there is none. A metric that is missing or no number is no breach."""
    text = metadata.get(policy.metric)
    value, bound = _number(text or ""), _number(policy.threshold)
    if value is None or bound is None:
        return ""
    if policy.direction == "maximize":
        return f"{policy.metric} {text} is below {policy.threshold}" if value < bound else ""
    return f"{policy.metric} {text} is above {policy.threshold}" if value > bound else ""


def _compared(
    policy: PromotionPolicy, candidate: Mapping[str, str], production: tuple[str, Mapping[str, str]] | None
) -> Judgement:
    metric, text = policy.metric, candidate.get(policy.metric)
    if text is None:
        return Judgement("Waiting", "MetricMissing", f"metadata[{metric}] is not set yet")
    value = _number(text)
    if value is None:
        return _not_a_number(f"metadata[{metric}]", text)
    bound = _number(policy.threshold) if policy.threshold is not None else None
    if bound is not None and (value < bound if policy.direction == "maximize" else value > bound):
        side = "below" if policy.direction == "maximize" else "above"
        return Judgement("Rejected", "PastThreshold", f"{metric} {text} is {side} the threshold {policy.threshold}")
    noise = _own_noise(policy, candidate)
    if isinstance(noise, Judgement):
        return noise
    if production is None:
        return Judgement("Promoted", "Promoted", f"{metric} {text}; no entry of the family is in production")
    return _better(policy, text, value, noise, *production)


def _better(
    policy: PromotionPolicy, text: str, value: Decimal, noise: Decimal | None, name: str, production: Mapping[str, str]
) -> Judgement:
    metric, theirs = policy.metric, production.get(policy.metric)
    other = _number(theirs) if theirs is not None else None
    if other is None:
        what = "is not set" if theirs is None else f"is {json.dumps(theirs)}, which is no number"
        message = f"metadata[{metric}] of {name}, which is in production, {what}; set it there, or promote by hand"
        return Judgement("Rejected", "ProductionNotComparable", message)
    gain = value - other if policy.direction == "maximize" else other - value
    said = f"{metric} {text} against {theirs} of {name}"
    least = _number(policy.min_delta) or Decimal(0)
    if gain <= 0 or gain < least:
        needed = f"at least {policy.min_delta}" if least > 0 else "anything above 0"
        return Judgement("Rejected", "NotBetter", f"{said}: better by {_plain(gain)}, {needed} is needed")
    if noise is not None and policy.stderr_metric is not None:
        second = _number(production.get(policy.stderr_metric, ""))
        both = noise if second is None or second < 0 else (noise * noise + second * second).sqrt()
        whose = "the candidate's standard error" if both is noise else "the standard error of the difference"
        if gain <= both:
            message = f"{said}: better by {_plain(gain)}, which is within {whose}, {_plain(both)}"
            return Judgement("Rejected", "WithinNoise", message)
    return Judgement("Promoted", "Promoted", f"{said}: better by {_plain(gain)}")


def _own_noise(policy: PromotionPolicy, candidate: Mapping[str, str]) -> Decimal | Judgement | None:
    if policy.stderr_metric is None:
        return None
    where, text = f"metadata[{policy.stderr_metric}]", candidate.get(policy.stderr_metric)
    if text is None:
        return Judgement("Waiting", "MetricMissing", f"{where} is not set yet")
    noise = _number(text)
    if noise is None:
        return _not_a_number(where, text)
    return (
        noise
        if noise >= 0
        else Judgement("Rejected", "NotANumber", f"{where} is {text}; a standard error is not negative")
    )


def _approved(judgement: Judgement, approval: str | None) -> Judgement:
    """What a person has said about a promotion that the numbers allow."""
    if approval is None:
        message = f"{judgement.message}; waits for an approval (annotation {APPROVAL})"
        return Judgement("Waiting", "ApprovalNeeded", message)
    try:
        said = json.loads(approval)
        decision, by = said["decision"], said["by"]
    except (ValueError, TypeError, KeyError):
        decision, by = None, None
    if decision not in ("Approved", "Rejected") or not isinstance(by, str) or not by:
        message = (
            f'annotation {APPROVAL} is {approval[:80]!r}; write {{"decision": "Approved" or "Rejected", "by": "<who>"}}'
        )
        return Judgement("Waiting", "ApprovalUnreadable", message)
    comment = f": {said['comment']}" if said.get("comment") else ""
    if decision == "Rejected":
        return Judgement("Rejected", "ApprovalRejected", f"rejected by {by}{comment}")
    return Judgement("Promoted", "Promoted", f"{judgement.message}; approved by {by}{comment}", approved_by=by)


def _not_a_number(where: str, text: str) -> Judgement:
    return Judgement("Rejected", "NotANumber", f"{where} is {json.dumps(text[:80])}; a plain finite decimal is needed")


def _number(text: str) -> Decimal | None:
    return Decimal(text) if parse_decimal(text) is not None else None


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}" if -12 < value.adjusted() < 12 else f"{value:.6g}"
