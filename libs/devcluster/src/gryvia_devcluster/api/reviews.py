"""The POST-only requests: who am I, may I (always: there is one user), and evict a pod."""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.api.paths import Target
from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store import LabelSelector
from gryvia_devcluster.types import Json, ResourceType

_ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
_USER = {"username": "admin", "groups": ["system:masters", "system:authenticated"]}
_STATUS: dict[str, Json] = {
    "SelfSubjectAccessReview": {"allowed": True, "reason": "the token of this cluster may do everything"},
    "SelfSubjectRulesReview": {
        "resourceRules": [_ALL],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    },
    "SelfSubjectReview": {"userInfo": _USER},
}


def _review(group: str, kind: str) -> ResourceType:
    return ResourceType(group, "v1", f"{kind.lower()}s", kind, namespaced=False, singular=kind.lower())


REVIEWS = (
    _review("authorization.k8s.io", "SelfSubjectAccessReview"),
    _review("authorization.k8s.io", "SelfSubjectRulesReview"),
    _review("authentication.k8s.io", "SelfSubjectReview"),
)


def find_review(target: Target) -> ResourceType | None:
    return next(
        (rt for rt in REVIEWS if (rt.group, rt.version, rt.plural) == (target.group, target.version, target.plural)),
        None,
    )


def answer_review(rt: ResourceType, body: Any) -> Json:
    """The review with its status: the admin token may do everything. Raises ApiError."""
    if not isinstance(body, dict):
        raise ApiError("BadRequest", f"the body of the request must be a {rt.kind} object")
    spec = {"spec": body["spec"]} if isinstance(body.get("spec"), dict) else {}
    if not spec and rt.kind == "SelfSubjectAccessReview":
        raise ApiError("BadRequest", "spec: Required value: a SelfSubjectAccessReview needs a spec")
    return {"kind": rt.kind, "apiVersion": rt.api_version, "metadata": {}, **spec, "status": _STATUS[rt.kind]}


def evict(registry: Registry, target: Target, body: Any) -> Json:
    """Deletes the pod unless a PodDisruptionBudget forbids it. Raises ApiError TooManyRequests then."""
    pods = registry.resource("", "pods")
    pod = registry.get(pods, target.namespace, target.name)
    budgets, _ = registry.list(registry.resource("policy", "poddisruptionbudgets"), target.namespace)
    for budget in budgets:
        labels = (budget["spec"].get("selector") or {}).get("matchLabels") or {}
        selector = LabelSelector(",".join(f"{key}={value}" for key, value in labels.items()))
        allowed = (budget.get("status") or {}).get("disruptionsAllowed", 0)
        if labels and selector.matches(pod) and allowed < 1:
            raise ApiError(
                "TooManyRequests",
                "Cannot evict pod as it would violate the pod's disruption budget.",
                causes=[
                    {
                        "reason": "DisruptionBudget",
                        "message": f"The disruption budget {budget['metadata']['name']} needs more healthy pods",
                        "field": "",
                    }
                ],
            )
    options = (body or {}).get("deleteOptions") or {}
    conditions = options.get("preconditions") or {}
    registry.delete(
        pods,
        target.namespace,
        target.name,
        uid=conditions.get("uid"),
        resource_version=conditions.get("resourceVersion"),
        grace_seconds=options.get("gracePeriodSeconds"),
    )
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
