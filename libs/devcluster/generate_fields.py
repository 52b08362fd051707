"""Writes api/fields.json: the field names and types of the built-in kinds, read from the kubernetes_asyncio models.

Run once per Kubernetes version (`python libs/devcluster/generate_fields.py`); the result is data that is committed. Each
type is `{"f": {field: type}, "r": [required fields]}` with the types s string, i integer, b boolean, n number, t time,
q quantity or int-or-string, * anything, `{T` a map, `[T` a list, or the name of another type.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import kubernetes_asyncio.client.models as models

ROOTS = """V1Namespace V1Pod V1Service V1Endpoints V1ConfigMap V1Secret V1PersistentVolumeClaim V1PersistentVolume
V1ServiceAccount CoreV1Event V1Node V1ResourceQuota V1LimitRange V1Deployment V1ReplicaSet V1StatefulSet V1DaemonSet
V1ControllerRevision V1Job V1CronJob V2HorizontalPodAutoscaler V1Lease V1EndpointSlice V1NetworkPolicy V1Ingress
V1IngressClass V1PodDisruptionBudget V1Role V1RoleBinding V1ClusterRole V1ClusterRoleBinding V1StorageClass V1PriorityClass
V1CustomResourceDefinition V1SelfSubjectAccessReview V1Scale""".split()
PLAIN = {"str": "s", "int": "i", "bool": "b", "float": "n", "datetime": "t", "object": "*"}
QUANTITY_MAPS = {"limits", "requests", "capacity", "allocatable", "overhead", "default", "hard", "used", "max", "min"}
QUANTITIES = {"size_limit", "divisor", "quantity", "average_value", "value"}
INT_OR_STRING = {"target_port", "port", "max_unavailable", "max_surge", "min_available"}


def code(declared: str, field: str, owner: str) -> str:
    if declared in PLAIN:
        if field in QUANTITIES and re.search(r"Metric|ResourceFieldSelector|EmptyDir|CSIStorage", owner):
            return "q"
        if declared == "object" and field in INT_OR_STRING:
            return "q"
        return PLAIN[declared]
    if match := re.fullmatch(r"list\[(.*)\]", declared):
        return "[" + code(match[1], field, owner)
    if match := re.fullmatch(r"dict\(str, (.*)\)", declared):
        return "{" + ("q" if field in QUANTITY_MAPS or field == "allocated_resources" else code(match[1], field, owner))
    return declared


def describe(name: str) -> dict[str, object]:
    model = getattr(models, name)
    fields = {
        model.attribute_map[field]: code(declared, field, name) for field, declared in model.openapi_types.items()
    }
    source = inspect.getsource(model)
    required = re.findall(r"and (?:self\.)?(\w+) is None:", source)
    return {
        "f": dict(sorted(fields.items())),
        "r": sorted({model.attribute_map[field] for field in required if field in model.attribute_map}),
    }


def main() -> None:
    types: dict[str, dict[str, object]] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name in types or name == "V1JSONSchemaProps":
            continue
        types[name] = describe(name)
        waiting += re.findall(r"\b(?:Core)?V\d\w+", " ".join(types[name]["f"].values()))  # type: ignore[attr-defined]
    types["V1JSONSchemaProps"] = {"f": {}, "r": []}
    target = Path(__file__).parent / "src/gryvia_devcluster/api/fields.json"
    lines = [f"{json.dumps(name)}: {json.dumps(types[name], separators=(',', ':'))}" for name in sorted(types)]
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
