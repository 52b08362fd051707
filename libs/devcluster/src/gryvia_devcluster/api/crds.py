"""From a CustomResourceDefinition to served types, and the status a CRD gets for it.

Devcluster accepts a CRD's names at once (there is one writer and no naming controller), so Established and NamesAccepted
are true in the same write that creates it, and the type answers the next request.
"""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.api.catalog import Served
from gryvia_devcluster.types import Json, ResourceType

_NO_COLUMNS = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)


def served_versions(crd: Json) -> list[Served]:
    return [_served(crd["spec"], version) for version in crd["spec"]["versions"] if version.get("served")]


def _served(spec: Json, version: Json) -> Served:
    names: Json = spec["names"]
    subresources: Json = version.get("subresources") or {}
    rt = ResourceType(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(subresources),
        schema=version["schema"]["openAPIV3Schema"],
        columns=tuple(version.get("additionalPrinterColumns") or _NO_COLUMNS),
        scale=subresources.get("scale"),
    )
    selectable = frozenset(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ())
    warning = ""
    if version.get("deprecated"):
        warning = version.get("deprecationWarning") or f"{rt.api_version} {rt.kind} is deprecated"
    return Served(rt, storage=bool(version.get("storage")), selectable=selectable, warning=warning)


def established_status(crd: Json, now: str) -> Json:
    """The status of a CRD whose types are served."""
    spec, old = crd["spec"], crd.get("status") or {}
    known: dict[str, Any] = {condition["type"]: condition for condition in old.get("conditions") or []}
    conditions = [
        known.get(name)
        or {"type": name, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
        for name, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    storage = [version["name"] for version in spec["versions"] if version.get("storage")]
    earlier = [name for name in old.get("storedVersions") or [] if name not in storage]
    return {"acceptedNames": spec["names"], "conditions": conditions, "storedVersions": [*earlier, *storage]}
