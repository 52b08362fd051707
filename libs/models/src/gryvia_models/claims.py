"""Who asks for production by hand and has not been heard yet.

A policy compares with the entry in production. Where two entries are applied at once, one in production and one in staging, the record
may not name the first when the second is judged: "no entry is in production" would then be an old view, and the second would be
promoted and replaced at once. So a judgement waits for every such entry until its own pass is done, which its observedGeneration says.
"""

from __future__ import annotations

from collections.abc import Iterable

from gryvia_common.kinds.families import Family
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.objects import Json, is_deleting, metadata, uid_of
from gryvia_common.runtime.controller import Index, Selection
from gryvia_common.runtime.world import World
from gryvia_models.policies import Judgement

_NAME = "asking-for-production"


def selection(namespace: str, model_name: str) -> Selection:
    return Selection(_NAME, f"{namespace}/{model_name}")


def _keys(entry: Json) -> Iterable[str]:
    spec = entry.get("spec") or {}
    if spec.get("stage") == "production":
        yield f"{metadata(entry).get('namespace')}/{spec.get('modelName')}"


INDEX = Index(_NAME, MODEL_REGISTRY.resource, _keys)


def unheard(world: World, namespace: str, model_name: str, family: Family) -> Judgement | None:
    """What the policy says while an entry's stage asks for production and its pass is not done; None when there is no such entry."""
    asked = selection(namespace, model_name)
    settled = {one.uid for one in (*family.demoting, *([family.production] if family.production else []))}
    for entry in world.select(asked.index, asked.key):
        if uid_of(entry) not in settled and not is_deleting(entry) and not _passed(entry):
            said = f"{metadata(entry)['name']} is about to be in production, its stage says so; it is judged after that"
            return Judgement("Waiting", "ProductionAsked", said)
    return None


def _passed(entry: Json) -> bool:
    observed = (entry.get("status") or {}).get("observedGeneration") or 0
    return int(observed) >= int(metadata(entry).get("generation") or 1)
