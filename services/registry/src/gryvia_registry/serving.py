"""What GryviaInferenceServices say about an entry: who serves it, and how that service is.

This service makes no inference service and changes none: that is the serving service's, which follows the family's record and
`model.promoted`. Here `autoServe` ends in that event and in the condition ModelServing, and whatever serves the entry, by
autoServe or made by hand, is mirrored.
"""

from __future__ import annotations

from collections.abc import Iterable

from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kube.children import child_name, is_controlled_by
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.runtime.controller import Index, Ref
from gryvia_common.runtime.world import World
from gryvia_models.serving import Serving, is_stable, mirrored, names
from gryvia_registry.entry import Entry

SERVED = "served"


def _keys(service: Json) -> Iterable[str]:
    return [f"{metadata(service).get('namespace') or ''}/{name}" for name in sorted(names(service))]


INDEX = Index(SERVED, INFERENCE_SERVICE.resource, _keys)


def shared_service(entry: Entry) -> Iterable[Ref]:
    config = entry.spec.serving_config
    if config is not None and config.service_name:
        yield Ref(INFERENCE_SERVICE.resource, entry.namespace, config.service_name)


def serving_names(entry: Entry, world: World) -> list[str]:
    """The services that need the entry's files. Not one that belongs to the entry: it goes when the entry goes."""
    found = world.select(SERVED, f"{entry.namespace}/{entry.name}")
    return [metadata(one)["name"] for one in found if not is_controlled_by(one, entry.raw)]


def mirror(entry: Entry, world: World, *, in_production: bool) -> Serving:
    service = _service(entry, world)
    if service is not None:
        return mirrored(entry.name, service)
    if not (entry.spec.auto_serve and in_production):
        why = "autoServe is off" if not entry.spec.auto_serve else "it is not its family's production entry"
        return Serving(("False", "NotServing", f"{why}, and no GryviaInferenceService names it"))
    config = entry.spec.serving_config
    if config is not None and config.service_name:
        what = f"GryviaInferenceService {config.service_name} does not serve this entry"
    else:
        what = f"there is no GryviaInferenceService {child_name(entry.name, 'serving')}"
    message = (
        f"autoServe: {what}; the service that sees to that has not answered or is not part of this installation. "
        f"To serve the model now, make a GryviaInferenceService with modelRef: {entry.name}"
    )
    return Serving(("False", "ServingUnavailable", message))


def _service(entry: Entry, world: World) -> Json | None:
    """The one that serves the entry: its own, the shared one, or the first by name; one whose canary it is comes last."""
    found = list(world.select(SERVED, f"{entry.namespace}/{entry.name}"))
    config = entry.spec.serving_config
    preferred = (child_name(entry.name, "serving"), config.service_name if config else None)

    def rank(service: Json) -> tuple[bool, bool, str]:
        name = metadata(service)["name"]
        return not is_stable(entry.name, service), name not in preferred, name

    return min(found, key=rank, default=None)
