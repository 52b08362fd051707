"""A registry entry as a pass sees it, and its finalizer.

The finalizer keeps an entry that is served: no service is left with a modelRef that leads nowhere. It is on entries that a service
names and on production entries with autoServe, and on no others: who deletes an entry that nobody serves needs nobody's
leave, also when this service is gone.
"""

from __future__ import annotations

from gryvia_common.kinds.modelregistry import GryviaModelRegistrySpec, GryviaModelRegistryStatus
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import GROUP
from gryvia_common.runtime.world import Object

Entry = Object[GryviaModelRegistrySpec, GryviaModelRegistryStatus]
FINALIZER = f"{GROUP}/serving-guard"


def guarded(raw: Json) -> bool:
    return FINALIZER in (metadata(raw).get("finalizers") or ())


def guard(raw: Json, *, wanted: bool) -> Json | None:
    """The change of the metadata; None when it is as it should be."""
    others = [one for one in metadata(raw).get("finalizers") or () if one != FINALIZER]
    return None if guarded(raw) == wanted else {"finalizers": [*others, FINALIZER] if wanted else others or None}
