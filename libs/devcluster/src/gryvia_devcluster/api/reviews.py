"""The POST-only requests: may I (always, there is one user), and evict a pod."""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.api.paths import Target
from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store import LabelSelector
from gryvia_devcluster.types import Json


def access_review(body: Any) -> Json:
    """A SelfSubjectAccessReview that is allowed: the admin token may do everything."""
    if not isinstance(body, dict) or not isinstance(body.get("spec"), dict):
        raise ApiError("BadRequest", "spec: Required value: a SelfSubjectAccessReview needs a spec")
    return {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": body["spec"],
        "status": {"allowed": True, "reason": "the token of this cluster may do everything"},
    }


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
