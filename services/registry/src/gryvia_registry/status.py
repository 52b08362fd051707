"""The status of an entry: the record's view of it, the policy's judgement, and what serves it.

The same view gives the same status, so an entry that has settled causes no write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gryvia_common.kinds.conditions import Said, set_conditions, timestamp
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY, GryviaModelRegistryStatus, RegistryPhase
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_models import aliases
from gryvia_models import family as changes
from gryvia_models.policies import Judgement
from gryvia_models.serving import Serving
from gryvia_registry.rollback import Rollback
from gryvia_registry.standing import IN_PRODUCTION, Standing

ROLLED_BACK = "RolledBack"
PASSING = ("AliasesHeld", "DeletionHeld", "FamilyRecord", "FieldsIgnored", "SpecValid")
ENDED = (changes.REPLACED, changes.ROLLED_BACK, changes.RELEASED, changes.DELETED)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a pass found out. `wrong`: about the spec; `held`: the services for which a deletion waits; `pending`: what the spec
    asks for is still to be done, in the record or in a stage."""

    serving: Serving
    pending: bool = False
    judgement: Judgement | None = None
    back: Rollback | None = None
    wrong: str = ""
    ignored: str = ""
    held: tuple[str, ...] = ()


def status_of(standing: Standing, found: Findings) -> GryviaModelRegistryStatus:
    before, generation, serving = standing.entry.status, standing.entry.generation, found.serving
    said, passing = _said(standing, found), _passing(standing)
    phase, message = _phase(standing, found)
    update: dict[str, object] = {
        "phase": phase,
        "message": message or None,
        "conditions": set_conditions(before.conditions, said, passing=passing, now=standing.now, generation=generation),
        "observed_generation": before.observed_generation if found.pending else generation,
        "registered_at": before.registered_at or timestamp(standing.now),
        "inference_service_name": serving.name,
        "serving_endpoint": serving.endpoint,
        "health": serving.health,
        "deployed_at": _deployed_at(standing, serving),
        "aliases": aliases.held(standing.family, standing.entry.uid) or None,
        **_of_record(standing),
    }
    if _was_promoted(standing):
        update["promotion_decision"] = "Promoted"
    elif found.judgement is not None and found.judgement.decision != "Promoted":
        update["promotion_decision"] = found.judgement.decision
    return before.model_copy(update=update)


def _of_record(standing: Standing) -> dict[str, object]:
    term = standing.term
    if standing.unreadable or term is None or not (standing.in_production or term.end):
        return {"history": None}
    if not standing.in_production:
        return {"history": None, "production_change": term.number}
    earlier = changes.previous(standing.family, term)
    return {
        "production_change": term.number,
        "previous_version": earlier[0].entry if earlier else None,
        "history": changes.spans(standing.family),
    }


def _deployed_at(standing: Standing, serving: Serving) -> str | None:
    before = standing.entry.status
    known = before.deployed_at if serving.name == before.inference_service_name else None
    return known or timestamp(standing.now) if serving.phase == "Serving" else known


def _phase(standing: Standing, found: Findings) -> tuple[RegistryPhase, str]:
    if found.wrong:
        return "Failed", found.wrong
    if found.serving.phase is not None:
        return found.serving.phase, found.serving.message
    if (term := standing.rolled_back) is not None:
        return "RolledBack", f"{term.successor} is in production again"
    return "Registered", ""


def _said(standing: Standing, found: Findings) -> Iterator[Said]:
    artifacts = standing.entry.spec.artifacts
    if found.wrong:
        yield "ModelRegistered", "False", "InvalidSpec", found.wrong
        yield "SpecValid", "False", "Invalid", found.wrong
    else:
        yield "ModelRegistered", "True", "Registered", f"files: {artifacts.s3_path or f'claim {artifacts.pvc_name}'}"
    yield "ModelServing", *found.serving.condition
    if not standing.unreadable:
        yield from _production(standing)
    yield from _gate(standing, found.judgement)
    if found.back is not None and found.back.refused and not found.back.waits:
        yield ROLLED_BACK, "False", found.back.refused, f"{found.back.why}: {found.back.message}"
    elif (term := standing.rolled_back) is not None:
        reason = changes.rolled_back_for(standing.family, term)
        yield ROLLED_BACK, "True", reason, f"{term.successor} is in production again since {term.end}"
    if found.held:
        message = (
            f"served by GryviaInferenceService {', '.join(found.held)}; it goes when that serves another or is deleted"
        )
        yield "DeletionHeld", "True", "Served", message
    if found.ignored:
        yield "FieldsIgnored", "True", "NoEffect", found.ignored
    yield from _record(standing)
    yield from _aliases(standing)


def _production(standing: Standing) -> Iterator[Said]:
    """Why a term ended stands there until something new is asked for, and while the entry is archived."""
    term, before = standing.term, standing.said(IN_PRODUCTION)
    reason, stage = before.reason if before is not None else "", standing.stage
    if term is not None and standing.in_production:
        said = f"since {term.start}, change {term.number} of the family: {term.note}"
        yield IN_PRODUCTION, "True", "InProduction", said
        return
    if term is not None and term.end is not None:
        asks = stage != "archived" and not standing.demoted and standing.entry.generation > term.generation
        if not standing.told_end or (reason == term.reason and not asks):
            successor = f", {term.successor} took its place" if term.successor else ""
            yield IN_PRODUCTION, "False", term.reason, f"from {term.start} to {term.end}{successor}"
            return
    if stage == "archived" and not standing.holds:
        if reason not in ENDED:
            yield IN_PRODUCTION, "False", "Archived", "it was archived by hand"
    elif not standing.holds or before is None:
        yield IN_PRODUCTION, "False", "NotPromoted", f"its stage is {stage}"


def _gate(standing: Standing, judgement: Judgement | None) -> Iterator[Said]:
    """Of a promotion that waits for its turn nothing is said: the record decides."""
    if _was_promoted(standing) and standing.term is not None:
        yield "PromotionGate", "True", "Promoted", standing.term.note
    elif judgement is not None and judgement.decision != "Promoted":
        yield "PromotionGate", "False", judgement.reason, judgement.message


def _record(standing: Standing) -> Iterator[Said]:
    if standing.unreadable:
        message = f"{standing.unreadable}; mend it, or delete the ConfigMap to begin a new history"
        yield "FamilyRecord", "False", "Unreadable", f"nothing is promoted: {message}"
        return
    refusal = standing.world.refusal(CONFIG_MAPS, standing.record_name)
    if refusal is not None:
        yield "FamilyRecord", "False", refusal.reason, f"the family's record cannot be written: {refusal.message}"
    named = [one.entry for one in standing.family.demoting] if standing.holds else []
    for name in (*named, standing.entry.name):
        refused = standing.world.refusal(MODEL_REGISTRY.resource, name)
        if refused is not None:
            yield (
                "FamilyRecord",
                "False",
                "StageNotWritten",
                f"spec.stage of {name} cannot be written: {refused.message}",
            )
            return


def _aliases(standing: Standing) -> Iterator[Said]:
    lost = aliases.taken_over(standing.family, standing.entry.uid)
    if lost:
        said = "; ".join(f"{alias} points to {other}, which asked for it later" for alias, other in lost.items())
        yield (
            "AliasesHeld",
            "False",
            "TakenOver",
            f"{said}; remove it from spec.aliases, and add it again to take it back",
        )
    elif standing.entry.spec.aliases and aliases.held(standing.family, standing.entry.uid):
        yield "AliasesHeld", "True", "Held", "every alias in spec.aliases points here"


def _passing(standing: Standing) -> tuple[str, ...]:
    """Conditions that go when nothing is said of them. A rollback is told of until something new is asked for."""
    gate = () if standing.stage != "dev" and standing.entry.spec.promotion_policy else ("PromotionGate",)
    told = standing.said(ROLLED_BACK)
    back = (ROLLED_BACK,) if told is not None and told.status == "True" and standing.stage != "archived" else ()
    return (*PASSING, *gate, *back)


def _was_promoted(standing: Standing) -> bool:
    term = standing.term
    return standing.in_production and term is not None and term.cause == "Promoted"
