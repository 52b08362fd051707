"""The mistakes in a pod's spec that a user makes, with the real server's words and field paths."""

from __future__ import annotations

import re
from typing import Any

from gryvia_devcluster.api import refusals
from gryvia_devcluster.store.qualified import DNS_LABEL, LABEL_HINT
from gryvia_devcluster.types import Json

_QUANTITY = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?$")
_RESTART = ("Always", "OnFailure", "Never")
_ENV_NAME = re.compile(r"^[ -<>-~]+$")


def pod_spec_causes(spec: Json, where: str) -> list[refusals.Cause]:
    """`where` is the path of the spec: `spec` or `spec.template.spec`."""
    causes: list[refusals.Cause] = []
    if not spec.get("containers"):
        causes.append(refusals.required(f"{where}.containers"))
    if spec.get("restartPolicy") not in _RESTART:
        causes.append(refusals.unsupported(f"{where}.restartPolicy", spec.get("restartPolicy"), _RESTART))
    volumes = _unique_names(spec.get("volumes") or [], f"{where}.volumes", causes)
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            causes += _container_causes(container, f"{where}.{field}[{index}]", volumes, seen)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        causes.append(refusals.invalid_value(f"{where}.terminationGracePeriodSeconds", grace, _not_negative()))
    return causes


def _not_negative() -> str:
    return "must be greater than or equal to 0"


def _unique_names(items: list[Any], where: str, causes: list[refusals.Cause]) -> set[str]:
    names: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name")
        if not name:
            causes.append(refusals.required(f"{where}[{index}].name"))
        elif name in names:
            causes.append(_duplicate(f"{where}[{index}].name", name))
        elif not DNS_LABEL.match(name) or len(name) > 63:
            causes.append(refusals.invalid_value(f"{where}[{index}].name", name, LABEL_HINT))
        names.add(name)
    return names


def _duplicate(where: str, value: str) -> refusals.Cause:
    return {"reason": "FieldValueDuplicate", "message": f'Duplicate value: "{value}"', "field": where}


def _container_causes(container: Json, where: str, volumes: set[str], seen: set[str]) -> list[refusals.Cause]:
    causes: list[refusals.Cause] = []
    name = container.get("name")
    if not name:
        causes.append(refusals.required(f"{where}.name"))
    elif name in seen:
        causes.append(_duplicate(f"{where}.name", name))
    elif not DNS_LABEL.match(name) or len(name) > 63:
        causes.append(refusals.invalid_value(f"{where}.name", name, LABEL_HINT))
    seen.add(name or "")
    if not container.get("image"):
        causes.append(refusals.required(f"{where}.image"))
    for index, variable in enumerate(container.get("env") or []):
        if not variable.get("name"):
            causes.append(refusals.required(f"{where}.env[{index}].name"))
        elif not _ENV_NAME.match(variable["name"]):
            why = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            causes.append(refusals.invalid_value(f"{where}.env[{index}].name", variable["name"], why))
        if variable.get("value") and variable.get("valueFrom"):
            why = "may not be specified when `value` is not empty"
            causes.append(refusals.invalid_value(f"{where}.env[{index}].valueFrom", "", why))
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            causes.append(_missing(f"{where}.volumeMounts[{index}].name", mount.get("name", "")))
        if not mount.get("mountPath"):
            causes.append(refusals.required(f"{where}.volumeMounts[{index}].mountPath"))
    for index, port in enumerate(container.get("ports") or []):
        number = port.get("containerPort")
        if number is None:
            causes.append(refusals.required(f"{where}.ports[{index}].containerPort"))
        elif not 1 <= number <= 65535:
            why = "must be between 1 and 65535, inclusive"
            causes.append(refusals.invalid_value(f"{where}.ports[{index}].containerPort", number, why))
    causes += _resource_causes(container.get("resources") or {}, f"{where}.resources")
    return causes


def _missing(where: str, value: str) -> refusals.Cause:
    return {"reason": "FieldValueNotFound", "message": f'Not found: "{value}"', "field": where}


def _resource_causes(resources: Json, where: str) -> list[refusals.Cause]:
    causes = []
    for side in ("limits", "requests"):
        for resource, amount in (resources.get(side) or {}).items():
            if not _QUANTITY.match(str(amount)):
                why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                causes.append(refusals.invalid_value(f"{where}.{side}[{resource}]", amount, why))
            elif str(amount).startswith("-"):
                causes.append(refusals.invalid_value(f"{where}.{side}[{resource}]", amount, _not_negative()))
    return causes


_MUTABLE = ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates", "nodeName")


def pod_update_causes(old: Json, new: Json) -> list[refusals.Cause]:
    """A pod's spec is fixed, but for images, deadlines, tolerations, and its node while it has none."""

    def fixed(spec: Json) -> Json:
        rest = {key: value for key, value in spec.items() if key not in _MUTABLE}
        for field in ("containers", "initContainers"):
            rest[field] = [{**container, "image": ""} for container in spec.get(field) or []]
        return rest

    moved = old.get("nodeName") and old["nodeName"] != new.get("nodeName")
    if fixed(old) == fixed(new) and not moved:
        return []
    why = (
        "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
        "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
    )
    return [refusals.forbidden_field("spec", why)]
