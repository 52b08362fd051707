"""Whether a pod can run on this node: its node selector, and the GPUs it asks for. Pure.

CPU and memory requests are not counted on purpose: a laptop should run what a cluster would, only slower.
"""

from __future__ import annotations

from collections.abc import Mapping

from gryvia_devcluster.types import Json


def refusal(pod: Json, labels: Mapping[str, str], free: Mapping[str, int]) -> str:
    """Why the pod does not fit, in the scheduler's words; empty when it does. `free` are extended resources left."""
    spec = pod["spec"]
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    for resource, amount in extended_requests(pod).items():
        if amount > free.get(resource, 0):
            return f"0/1 nodes are available: 1 Insufficient {resource}."
    return ""


def extended_requests(pod: Json) -> dict[str, int]:
    """What the pod asks for of resources with a domain, such as nvidia.com/gpu: the larger of init and main sums."""
    main: dict[str, int] = {}
    for container in pod["spec"].get("containers") or ():
        for resource, amount in _extended(container).items():
            main[resource] = main.get(resource, 0) + amount
    for container in pod["spec"].get("initContainers") or ():
        for resource, amount in _extended(container).items():
            main[resource] = max(main.get(resource, 0), amount)
    return main


def _extended(container: Json) -> dict[str, int]:
    resources = container.get("resources") or {}
    wanted = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return {name: int(amount) for name, amount in wanted.items() if "/" in name}


def unschedulable(pod: Json, message: str, now: str) -> Json:
    """The status of a pod that has no place: PodScheduled=False, Unschedulable."""
    status = pod.get("status", {})
    others = [c for c in status.get("conditions") or () if c["type"] != "PodScheduled"]
    before = next((c for c in status.get("conditions") or () if c["type"] == "PodScheduled"), None)
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": before["lastTransitionTime"] if before and before["status"] == "False" else now,
    }
    return {**status, "phase": "Pending", "conditions": [*others, condition]}
