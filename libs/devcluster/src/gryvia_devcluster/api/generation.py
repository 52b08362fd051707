"""When metadata.generation moves: with the desired state, never with metadata or status alone."""

from __future__ import annotations

from gryvia_devcluster.api.builtins import GENERATIONS
from gryvia_devcluster.api.catalog import Served
from gryvia_devcluster.types import Json


def is_kept(served: Served) -> bool:
    return served.custom or served.rt.group_resource in GENERATIONS


def settle(served: Served, live: Json, new: Json) -> None:
    """Sets the generation of `new` (in place) by what differs from `live`."""
    if is_kept(served):
        changed = _desired(served, live) != _desired(served, new)
        new["metadata"]["generation"] = live["metadata"].get("generation", 1) + int(changed)


def _desired(served: Served, obj: Json) -> Json:
    rt = served.rt
    if not served.custom:
        desired = {"spec": obj.get("spec")}
        if rt.group_resource == "deployments.apps":
            desired["annotations"] = obj["metadata"].get("annotations")
        return desired
    hidden = ("metadata", "status") if "status" in rt.subresources else ("metadata",)
    return {key: value for key, value in obj.items() if key not in hidden}
