"""The downward API: what `fieldRef` and `resourceFieldRef` read from a pod."""

from __future__ import annotations

import json
import re
from fractions import Fraction

from gryvia_devcluster.node.quantity import divide_up, parse_quantity
from gryvia_devcluster.types import Json

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def field_value(pod: Json, path: str) -> str:
    """Raises ValueError for a path the downward API does not have."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    if match := _SUBSCRIPT.fullmatch(path):
        return str((meta.get(match[1]) or {}).get(match[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        entries = meta.get(path.removeprefix("metadata.")) or {}
        return "\n".join(f"{key}={json.dumps(value)}" for key, value in sorted(entries.items()))
    values = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta.get("namespace", ""),
        "metadata.uid": meta["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.podIP": status.get("podIP", ""),
        "status.podIPs": ",".join(entry["ip"] for entry in status.get("podIPs") or ()),
        "status.hostIP": status.get("hostIP", ""),
        "status.hostIPs": ",".join(entry["ip"] for entry in status.get("hostIPs") or ()),
    }
    if path not in values:
        raise ValueError(f"unsupported fieldPath: {path}")
    return str(values[path])


def resource_value(pod: Json, container: Json, reference: Json, allocatable: dict[str, str]) -> str:
    """A limit falls back to the node's allocatable amount, a request to zero, as the kubelet does."""
    name = reference.get("containerName")
    groups = (pod["spec"].get("containers") or [], pod["spec"].get("initContainers") or [])
    found = next((c for group in groups for c in group if c["name"] == name), container)
    kind, _, resource = reference["resource"].partition(".")
    resources = found.get("resources") or {}
    amount = (resources.get(kind) or {}).get(resource)
    if amount is None:
        amount = allocatable.get(resource, "0") if kind == "limits" else "0"
    divisor = parse_quantity(reference.get("divisor") or "1") or Fraction(1)
    return str(divide_up(parse_quantity(amount), divisor))
