"""Validation of the built-in kinds: what a user would notice, not all of the real server's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gryvia_devcluster.api import refusals
from gryvia_devcluster.api.builtins import CRDS, PODS
from gryvia_devcluster.api.crd_validation import crd_causes
from gryvia_devcluster.api.job_validation import job_causes, job_template_causes
from gryvia_devcluster.api.pod_validation import pod_spec_causes, pod_update_causes
from gryvia_devcluster.types import Json, ResourceType

Validator = Callable[[Json, Json | None], list[refusals.Cause]]


def _template_causes(template: Json, where: str, allowed: tuple[str, ...]) -> list[refusals.Cause]:
    spec = template.get("spec") or {}
    policy = spec.get("restartPolicy")
    if spec and policy in ("Always", "OnFailure", "Never") and policy not in allowed:
        return [refusals.unsupported(f"{where}.spec.restartPolicy", policy, allowed)]
    if not spec:
        return [refusals.required(f"{where}.spec.containers")]
    return pod_spec_causes(spec, f"{where}.spec")


def _selector_causes(spec: Json) -> list[refusals.Cause]:
    selector = spec.get("selector") or {}
    if not selector:
        return [refusals.required("spec.selector")]
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        shown = "{" + ",".join(f'"{key}":"{value}"' for key, value in sorted(labels.items())) + "}"
        return [
            refusals.invalid_value(
                "spec.template.metadata.labels", shown, "`selector` does not match template `labels`"
            )
        ]
    return []


def _pod(obj: Json, old: Json | None) -> list[refusals.Cause]:
    if old is not None:
        return pod_update_causes(old["spec"], obj["spec"]) if old["spec"] != obj["spec"] else []
    return pod_spec_causes(obj["spec"], "spec")


def _workload(obj: Json, old: Json | None) -> list[refusals.Cause]:
    spec = obj["spec"]
    causes = _selector_causes(spec) + refusals.negative(spec, "replicas")
    causes += _template_causes(spec["template"], "spec.template", ("Always",))
    return causes + refusals.immutable(old, obj, "selector")


_STATEFUL_MUTABLE = {
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
}


def _stateful(obj: Json, old: Json | None) -> list[refusals.Cause]:
    causes = _workload(obj, None)
    if old is not None:
        keys = (old["spec"].keys() | obj["spec"].keys()) - _STATEFUL_MUTABLE
        if any(old["spec"].get(key) != obj["spec"].get(key) for key in keys):
            why = (
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
                "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
            )
            causes.append(refusals.forbidden_field("spec", why))
    return causes


def _cronjob(obj: Json, old: Json | None) -> list[refusals.Cause]:
    spec = obj["spec"]
    causes = [] if spec.get("schedule") else [refusals.required("spec.schedule")]
    template = spec["jobTemplate"]["spec"]["template"]
    return causes + job_template_causes(template, "spec.jobTemplate.spec.template")


def _service(obj: Json, old: Json | None) -> list[refusals.Cause]:
    spec = obj["spec"]
    causes: list[refusals.Cause] = []
    ports: list[Any] = spec.get("ports") or []
    headless = spec.get("clusterIP") == "None"
    if not ports and not headless and spec["type"] != "ExternalName":
        causes.append(refusals.required("spec.ports"))
    for index, port in enumerate(ports):
        number = port.get("port")
        if number is None or not 1 <= number <= 65535:
            why = "must be between 1 and 65535, inclusive"
            causes.append(refusals.invalid_value(f"spec.ports[{index}].port", number or 0, why))
        if len(ports) > 1 and not port.get("name"):
            causes.append(refusals.required(f"spec.ports[{index}].name"))
    if old is not None and old["spec"].get("clusterIP") and spec["type"] != "ExternalName":
        causes += refusals.immutable(old, obj, "clusterIP")
    return causes


def _claim(obj: Json, old: Json | None) -> list[refusals.Cause]:
    spec = obj["spec"]
    causes = []
    if not spec.get("accessModes"):
        causes.append(refusals.required("spec.accessModes", "at least 1 access mode is required"))
    if not ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
        causes.append(refusals.required("spec.resources[storage]"))
    if old is not None:
        free = {"resources", "volumeName", "storageClassName", "volumeAttributesClassName"}
        keys = (old["spec"].keys() | spec.keys()) - free
        if any(old["spec"].get(key) != spec.get(key) for key in keys):
            why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
            causes.append(refusals.forbidden_field("spec", why))
    return causes


def _frozen_data(obj: Json, old: Json | None) -> list[refusals.Cause]:
    if old is None or not old.get("immutable"):
        return []
    if obj.get("data") != old.get("data") or not obj.get("immutable"):
        return [refusals.forbidden_field("data", "field is immutable when `immutable` is set")]
    return []


_VALIDATORS: dict[str, Validator] = {
    PODS: _pod,
    "deployments.apps": _workload,
    "replicasets.apps": _workload,
    "daemonsets.apps": _workload,
    "statefulsets.apps": _stateful,
    "jobs.batch": job_causes,
    "cronjobs.batch": _cronjob,
    "services": _service,
    "persistentvolumeclaims": _claim,
    "configmaps": _frozen_data,
    "secrets": _frozen_data,
    CRDS: crd_causes,
}


def validate(rt: ResourceType, obj: Json, old: Json | None) -> list[refusals.Cause]:
    validator = _VALIDATORS.get(rt.group_resource)
    return validator(obj, old) if validator else []
