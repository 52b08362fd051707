"""What an entry changes in its family's record, and what has to follow the record in the specs.

    claim      by hand (stage production), by policy (stage staging), back in time (rollback)
    release    the stage was taken back by hand, or the entry is gone
    settle     an entry that was replaced has its stage archived by now

The record is written first, alone, by compare-and-set. Then whoever sees it writes the stages: the replaced ones are archived before
the new one becomes production, so that nobody sees two of them for longer than those writes take.
"""

from __future__ import annotations

from dataclasses import replace

from gryvia_common.kinds.families import Family, record_data
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.objects import Json, key_of, metadata, uid_of
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.plan import Patch
from gryvia_models import aliases, claims
from gryvia_models import family as changes
from gryvia_models.policies import APPROVAL, BY_HAND, TAKEN_BACK, Judgement, judge
from gryvia_registry.rollback import REQUESTED, Rollback
from gryvia_registry.standing import Standing

ASKING = ("production", "staging")
"""Stages in which an entry is in production, or may get there."""


def next_family(standing: Standing, judgement: Judgement | None, back: Rollback | None, *, valid: bool) -> Family:
    """The record after this entry's pass. `valid`: its spec is, so that it may ask for something."""
    family = _without_the_dead(standing)
    standing = replace(standing, family=family)
    if standing.demoted:
        family = _settled(standing)
    elif standing.holds:
        family = _kept(standing, back if valid else None)
    elif valid:
        family = _claimed(standing, judgement)
    return aliases.aligned(family, standing.entry.spec.aliases or (), standing.myself) if valid else family


def departed(standing: Standing, *, served: bool) -> Family:
    """The record after the pass of an entry that is being deleted."""
    standing = replace(standing, family=_without_the_dead(standing))
    if not served:
        return changes.without(standing.family, standing.myself, standing.now)
    return _settled(standing) if standing.demoted else standing.family


def judged(standing: Standing) -> Judgement | None:
    """What the policy says of an entry in staging; None when there is nothing to say yet."""
    entry, policy = standing.entry, standing.entry.spec.promotion_policy
    if policy is None or standing.stage != "staging" or standing.holds or standing.demoted:
        return None
    if standing.term is not None and entry.generation <= standing.term.generation:
        return TAKEN_BACK
    if (first := claims.unheard(standing.world, entry.namespace, entry.spec.model_name, standing.family)) is not None:
        return first
    production = None
    if standing.family.production is not None:
        found = standing.seen(standing.family.production)
        if found is None:
            return None
        production = (metadata(found)["name"], (found.get("spec") or {}).get("metadata") or {})
    return judge(policy, entry.spec.metadata or {}, production, entry.annotations.get(APPROVAL))


def record_patch(standing: Standing, family: Family) -> tuple[Patch, ...]:
    """By compare-and-set, when there is something to change."""
    record = standing.record
    if record is None or family == standing.family:
        return ()
    key = key_of(record)
    body: Json = {"data": record_data(family)}
    version = str(metadata(record)["resourceVersion"])
    return (Patch(CONFIG_MAPS, key.namespace, key.name, body, uid_of(record), version),)


def stage_patches(standing: Standing) -> tuple[Patch, ...]:
    """The stages that do not follow the record yet, the entry's own last."""
    if standing.demoted:
        return (_stage(standing.entry.raw, "archived"),) if standing.stage in ASKING else ()
    if not standing.holds:
        return ()
    replaced = [found for one in standing.family.demoting if (found := standing.seen(one)) is not None]
    archived = [_stage(found, "archived") for found in replaced if found["spec"].get("stage") in ASKING]
    own = () if standing.stage == "production" else (_stage(standing.entry.raw, "production"),)
    return (*archived, *own)


def _without_the_dead(standing: Standing) -> Family:
    family = standing.family
    for gone in standing.absent():
        family = changes.without(family, gone, standing.now)
    return family


def _settled(standing: Standing) -> Family:
    """Of an entry that was replaced: once its stage says so too."""
    if standing.stage in ASKING:
        return standing.family
    return changes.settled(standing.family, standing.entry.uid, generation=standing.entry.generation)


def _kept(standing: Standing, back: Rollback | None) -> Family:
    """Of the production entry."""
    entry, term, family = standing.entry, standing.term, standing.family
    edited = term is not None and standing.stage != "production" and entry.generation > term.generation
    if term is not None and edited and (standing.confirmed or standing.stage != term.stage):
        # Its stage was production and is not any more, or it was changed before it ever followed the record.
        return changes.release(family, changes.RELEASED, standing.now, generation=entry.generation)
    if back is None or back.target is None:
        return family
    target, raw = back.target
    return changes.claim(
        family,
        target,
        version=str(raw["spec"]["version"]),
        generation=int(metadata(raw).get("generation") or 1),
        stage=raw["spec"].get("stage") or "dev",
        cause="RolledBack",
        note=f"{back.why}: {entry.name} was rolled back; {back.message}",
        ended=changes.ROLLED_BACK,
        now=standing.now,
    )


def _claimed(standing: Standing, judgement: Judgement | None) -> Family:
    """Of an entry that is not in production: by hand or by policy, if its view of itself is not an old one."""
    entry, term = standing.entry, standing.term
    if standing.stage == "production" and (term is None or entry.generation > term.generation):
        judgement = BY_HAND
    if judgement is None or judgement.decision != "Promoted":
        return standing.family
    return changes.claim(
        standing.family,
        standing.myself,
        version=entry.spec.version,
        generation=entry.generation,
        stage=standing.stage,
        cause="ByHand" if judgement is BY_HAND else "Promoted",
        note=judgement.message,
        approved_by=judgement.approved_by,
        now=standing.now,
    )


def _stage(raw: Json, stage: str) -> Patch:
    """With the version that was seen. A request for a rollback of what is archived is answered by that."""
    key, meta = key_of(raw), metadata(raw)
    body: Json = {"spec": {"stage": stage}}
    if stage == "archived" and REQUESTED in (meta.get("annotations") or {}):
        body["metadata"] = {"annotations": {REQUESTED: None}}
    version = str(meta["resourceVersion"])
    return Patch(MODEL_REGISTRY.resource, key.namespace, key.name, body, uid_of(raw), version)
