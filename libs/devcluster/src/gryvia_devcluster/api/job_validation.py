"""What makes a Job invalid: its numbers, its pods' restart policy, its selector, its policies, and what cannot be changed later."""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.api import refusals
from gryvia_devcluster.api.pod_validation import pod_spec_causes
from gryvia_devcluster.types import Json

_RESTART = ("OnFailure", "Never")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_UID_LABEL = "batch.kubernetes.io/controller-uid"
_NUMBERS = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")


def job_causes(obj: Json, old: Json | None) -> list[refusals.Cause]:
    spec = obj["spec"]
    causes = refusals.negative(spec, *_NUMBERS, "backoffLimitPerIndex", "maxFailedIndexes")
    causes += job_template_causes(spec["template"], "spec.template")
    indexed = spec.get("completionMode") == "Indexed"
    if indexed and spec.get("completions") is None:
        causes.append(refusals.required("spec.completions", "when completion mode is Indexed"))
    if not indexed:
        causes += [
            refusals.invalid_value(f"spec.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(field) is not None
        ]
    causes += _failure_policy_causes(spec)
    if old is None:
        return causes + ([] if spec.get("manualSelector") else _selector_causes(obj))
    return causes + refusals.immutable(old, obj, *_fixed(spec, old))


def _fixed(spec: Json, old: Json) -> list[str]:
    """The fields that stay as they are."""
    fixed = ["selector", "completionMode", "podFailurePolicy", "successPolicy", "backoffLimitPerIndex"]
    if not (old["spec"].get("suspend") and not (old.get("status") or {}).get("startTime")):
        fixed.append("template")
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    return fixed if elastic else [*fixed, "completions"]


def job_template_causes(template: Json, where: str) -> list[refusals.Cause]:
    """Of a Job or of a CronJob's. A policy left out is Always, which is none for a Job."""
    spec = template.get("spec") or {}
    policy, place = spec.get("restartPolicy") or "Always", f"{where}.spec.restartPolicy"
    if not spec:
        causes = [refusals.required(f"{where}.spec.containers")]
    elif policy in (*_RESTART, "Always"):
        causes = pod_spec_causes(spec, f"{where}.spec")
    else:
        return pod_spec_causes(spec, f"{where}.spec")
    if policy == "Always":
        causes.append(refusals.required(place, 'valid values: "OnFailure", "Never"'))
    return causes


def _selector_causes(obj: Json) -> list[refusals.Cause]:
    """Whoever does not say manualSelector gets a selector, and may name no other."""
    selector, labels = obj["spec"].get("selector") or {}, obj["spec"]["template"]["metadata"].get("labels") or {}
    wanted: Json = selector.get("matchLabels") or {}
    if wanted == {_UID_LABEL: obj["metadata"]["uid"]}:
        return []
    causes = [refusals.invalid_value("spec.selector", selector, "`selector` not auto-generated")]
    if any(labels.get(key) != value for key, value in wanted.items()):
        why = "`selector` does not match template `labels`"
        causes.append(refusals.invalid_value("spec.template.metadata.labels", labels, why))
    return causes


def _failure_policy_causes(spec: Json) -> list[refusals.Cause]:
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    causes: list[refusals.Cause] = []
    restart = (spec["template"].get("spec") or {}).get("restartPolicy")
    if restart == "OnFailure":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        causes.append(refusals.invalid_value("spec.template.spec.restartPolicy", restart, why))
    rules: list[Any] = policy.get("rules") or []
    for index, rule in enumerate(rules):
        where = f"spec.podFailurePolicy.rules[{index}]"
        action = rule.get("action")
        if not action:
            causes.append(refusals.required(f"{where}.action", f"valid values: {list(_ACTIONS)}"))
        elif action not in _ACTIONS:
            causes.append(refusals.unsupported(f"{where}.action", action, _ACTIONS))
        told = [field for field in ("onExitCodes", "onPodConditions") if rule.get(field)]
        if not told:
            why = "specifying one of OnExitCodes and OnPodConditions is required"
            causes.append(refusals.invalid_value(where, rule, why))
        elif len(told) == 2:
            why = "specifying both OnExitCodes and OnPodConditions is not supported"
            causes.append(refusals.invalid_value(where, rule, why))
    return causes
