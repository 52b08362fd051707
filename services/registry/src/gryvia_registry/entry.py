"""A registry entry as a pass sees it, and the one default that its readers must agree on."""

from __future__ import annotations

from gryvia_common.kinds.modelregistry import GryviaModelRegistrySpec, GryviaModelRegistryStatus, Stage
from gryvia_common.kube.objects import Json
from gryvia_common.runtime.world import Object

Entry = Object[GryviaModelRegistrySpec, GryviaModelRegistryStatus]


def stage_of(entry: Entry) -> Stage:
    return entry.spec.stage or "dev"


def stage_seen(raw: Json) -> str:
    """The same of another entry."""
    return str((raw.get("spec") or {}).get("stage") or "dev")
