"""The scale subresource: an autoscaling/v1 Scale made from an object, and a Scale written back."""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.api import refusals
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.gotext import go_text, go_type
from gryvia_devcluster.types import Json, ResourceType

MOST_REPLICAS = 2**31 - 1


def _read(obj: Json, path: str) -> Any:
    value: Any = obj
    for step in path.lstrip(".").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _selector_text(selector: Any) -> str:
    if isinstance(selector, str):
        return selector
    if not isinstance(selector, dict):
        return ""
    labels = selector.get("matchLabels") or ({} if "matchExpressions" in selector else selector)
    parts = [f"{key}={value}" for key, value in sorted(labels.items()) if isinstance(value, str)]
    for rule in selector.get("matchExpressions") or []:
        operator, values = rule["operator"], ",".join(rule.get("values") or [])
        form = {"Exists": "{key}", "DoesNotExist": "!{key}"}.get(operator, "{key} {op} ({values})")
        parts.append(form.format(key=rule["key"], op=operator.lower(), values=values))
    return ",".join(parts)


def scale_of(rt: ResourceType, obj: Json) -> Json:
    """Raises ApiError NotFound where the type has no scale subresource."""
    if rt.scale is None:
        raise ApiError("NotFound", "the server could not find the requested resource")
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Json = {"replicas": _read(obj, rt.scale["statusReplicasPath"]) or 0}
    if path := rt.scale.get("labelSelectorPath"):
        status["selector"] = _selector_text(_read(obj, path))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: meta[field] for field in kept if field in meta},
        "spec": {"replicas": _read(obj, rt.scale["specReplicasPath"]) or 0},
        "status": status,
    }


def scale_causes(rt: ResourceType, obj: Json) -> list[refusals.Cause]:
    """What an object may not have where its scale is read: the scale's own types and bounds, whatever its schema says."""
    if rt.scale is None:
        return []
    causes: list[refusals.Cause] = []
    for path in (rt.scale["specReplicasPath"], rt.scale["statusReplicasPath"]):
        replicas, why = _access(obj, path, int, "int64")
        if why:
            causes.append(refusals.invalid_value(path, 0, why))
        elif replicas is not None and replicas < 0:
            causes.append(refusals.invalid_value(path, replicas, "should be a non-negative integer"))
        elif replicas is not None and replicas > MOST_REPLICAS:
            why = f"should be less than or equal to {MOST_REPLICAS}"
            causes.append(refusals.invalid_value(path, replicas, why))
    if path := rt.scale.get("labelSelectorPath"):
        _, why = _access(obj, path, str, "string")
        if why:
            causes.append(refusals.invalid_value(path, "", why))
    return causes


def _access(obj: Json, path: str, wanted: type, name: str) -> tuple[Any, str]:
    """The value at a path, None where it is absent, and what is wrong with it."""
    value: Any = obj
    steps = path.lstrip(".").split(".")
    for step in steps:
        if not isinstance(value, dict):
            return None, _wrong_type(steps, value, "map[string]interface{}")
        if step not in value:
            return None, ""
        value = value[step]
    if not isinstance(value, wanted) or isinstance(value, bool):
        return None, _wrong_type(steps, value, name)
    return value, ""


def _wrong_type(steps: list[str], value: Any, wanted: str) -> str:
    return f".{'.'.join(steps)} accessor error: {go_text(value)} is of the type {go_type(value)}, expected {wanted}"


def scaled(rt: ResourceType, live: Json, scale: Json) -> Json:
    """`live` with the replicas of `scale`; a copy of what changes. Raises ApiError."""
    if rt.scale is None:
        raise ApiError("NotFound", "the server could not find the requested resource")
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        path = rt.scale["specReplicasPath"]
        cause = refusals.invalid_value(path, replicas, "should be a non-negative integer")
        raise refusals.invalid(rt, live["metadata"]["name"], [cause])
    top: Json = {**live}
    place = top
    steps = rt.scale["specReplicasPath"].lstrip(".").split(".")
    for step in steps[:-1]:
        place[step] = dict(place.get(step) or {})
        place = place[step]
    place[steps[-1]] = replicas
    return top
