"""What GryviaInferenceServices say about a registry entry: whom they name, and how the one that serves it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gryvia_common.kinds.conditions import ConditionStatus
from gryvia_common.kinds.inferenceservice import Health
from gryvia_common.kinds.modelregistry import GryviaModelRegistrySpec, RegistryPhase
from gryvia_common.kube.children import child_name
from gryvia_common.kube.objects import Json, metadata


@dataclass(frozen=True, slots=True)
class Serving:
    """What goes into the entry's status. `condition`: of ModelServing. `phase` None: nobody serves it."""

    condition: tuple[ConditionStatus, str, str]
    phase: RegistryPhase | None = None
    name: str | None = None
    endpoint: str | None = None
    health: Health | None = None
    message: str = ""


def names(service: Json) -> set[str]:
    """The entries that a service names: what it serves, its canary, and what it may still go back to."""
    spec, status = service.get("spec") or {}, service.get("status") or {}
    canary = spec.get("canary") or {}
    found = {spec.get("modelRef"), status.get("promotedVersion")}
    if canary.get("enabled"):
        found.add(canary.get("modelVersion"))
    if status.get("bakeUntil"):
        found.add(status.get("previousVersion"))
    return {str(name) for name in found if name}


def mirror(entry: str, spec: GryviaModelRegistrySpec, services: Sequence[Json], *, in_production: bool) -> Serving:
    """`services`: those that name the entry. The one that counts is its own, the shared one, or the first by name; one whose
    canary it is comes last."""
    shared = spec.serving_config.service_name if spec.serving_config else None

    def rank(service: Json) -> tuple[bool, bool, str]:
        name = metadata(service)["name"]
        return not is_stable(entry, service), name not in (child_name(entry, "serving"), shared), name

    if services:
        return mirrored(entry, min(services, key=rank))
    if not (spec.auto_serve and in_production):
        why = "autoServe is off" if not spec.auto_serve else "it is not its family's production entry"
        return Serving(("False", "NotServing", f"{why}, and no GryviaInferenceService names it"))
    what = f"GryviaInferenceService {shared} does not serve it" if shared else "no GryviaInferenceService names it"
    message = (
        f"autoServe: {what}; the service that sees to that has not answered or is not part of this installation. "
        f"To serve the model now, make a GryviaInferenceService with modelRef: {entry}"
    )
    return Serving(("False", "ServingUnavailable", message))


def is_stable(entry: str, service: Json) -> bool:
    """Whether the entry is what the stable pods serve, not only a canary."""
    served = (service.get("status") or {}).get("promotedVersion") or service["spec"].get("modelRef")
    return entry in (served, service["spec"].get("modelRef"))


def mirrored(entry: str, service: Json) -> Serving:
    """The service's state as that of an entry it names."""
    name, status = metadata(service)["name"], service.get("status") or {}
    phase, said = status.get("phase") or "Pending", status.get("message") or ""
    who = f"GryviaInferenceService {name}"
    if not is_stable(entry, service):
        return Serving(("False", "Canary", f"a canary of {who}"), "Canary", name, health="Unknown")
    if phase == "Ready":
        return Serving(("True", "Serving", f"{who} serves it"), "Serving", name, status.get("endpoint"), "Healthy")
    if phase == "Failed":
        reason: tuple[ConditionStatus, str, str] = ("False", "Failed", f"{who} has failed: {said}")
        return Serving(reason, "Failed", name, health="Unhealthy", message=said)
    reason = ("False", "Deploying", f"{who} is {phase}: {said}".rstrip(": "))
    return Serving(reason, "Deploying", name, health="Unknown", message=said)
