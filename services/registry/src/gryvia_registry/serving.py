"""Which GryviaInferenceServices name an entry.

This service makes no inference service and changes none: that is the serving service's, which follows the family's record and
`model.promoted`. Here `autoServe` ends in that event and in the condition ModelServing, and whatever serves the entry, by
autoServe or made by hand, is mirrored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kube.children import is_controlled_by
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.runtime.controller import Index, Selection
from gryvia_common.runtime.world import World
from gryvia_models.serving import names
from gryvia_registry.entry import Entry


def _keys(service: Json) -> Iterable[str]:
    return [f"{metadata(service).get('namespace') or ''}/{name}" for name in sorted(names(service))]


INDEX = Index("served", INFERENCE_SERVICE.resource, _keys)


def selection(entry: Entry) -> Selection:
    return Selection(INDEX.name, f"{entry.namespace}/{entry.name}")


def services_of(entry: Entry, world: World) -> Sequence[Json]:
    return world.select(INDEX.name, f"{entry.namespace}/{entry.name}")


def dependants(entry: Entry, world: World) -> list[str]:
    """The services that need the entry's files. Not one that belongs to the entry: it goes when the entry goes."""
    return [metadata(one)["name"] for one in services_of(entry, world) if not is_controlled_by(one, entry.raw)]
