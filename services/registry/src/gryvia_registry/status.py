"""The status of an entry: the record's view of it, the policy's judgement, and what serves it.

The same view gives the same status, so an entry that has settled causes no write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gryvia_common.kinds.conditions import Said, find_condition, set_conditions, timestamp
from gryvia_common.kinds.families import Term
from gryvia_common.kinds.modelregistry import (
    MODEL_REGISTRY,
    REGISTRY_HISTORY,
    GryviaModelRegistryStatus,
    ProductionSpan,
    RegistryPhase,
)
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_registry import aliases
from gryvia_registry import family as changes
from gryvia_registry.promotion import Judgement
from gryvia_registry.rollback import Rollback
from gryvia_registry.serving import Serving
from gryvia_registry.standing import Standing

IN_PRODUCTION = "InProduction"
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


def proven(standing: Standing) -> bool:
    """Whether the status was written for this generation: that write carried the resourceVersion, so the entry is seen as it is."""
    said = find_condition(standing.entry.status.conditions, "ModelRegistered")
    return said is not None and said.observed_generation == standing.entry.generation


def in_production(standing: Standing) -> bool:
    """By the record, and by the stage, which follows it."""
    return standing.holds and standing.stage == "production"


def status_of(standing: Standing, found: Findings) -> GryviaModelRegistryStatus:
    before, entry, serving = standing.entry.status, standing.entry, found.serving
    said = [*_registered(standing, found), *_production(standing), *_gate(standing, found), *_told(standing, found)]
    conditions = set_conditions(
        before.conditions, said, passing=_passing(standing), now=standing.now, generation=entry.generation
    )
    phase, message = _phase(standing, found)
    same = serving.fields.get("inference_service_name") == before.inference_service_name
    deployed = timestamp(standing.now) if phase == "Serving" else None
    update: dict[str, object] = {
        "phase": phase,
        "message": message or None,
        "conditions": conditions,
        "observed_generation": before.observed_generation if found.pending else entry.generation,
        "registered_at": before.registered_at or timestamp(standing.now),
        "inference_service_name": serving.fields.get("inference_service_name"),
        "serving_endpoint": serving.fields.get("serving_endpoint"),
        "health": serving.fields.get("health"),
        "deployed_at": (before.deployed_at if same and serving.phase else None) or deployed,
        "aliases": aliases.held(standing.family, entry.uid) or None,
        "history": None,
    }
    if not standing.unreadable:
        update |= _of_record(standing)
    decision = "Promoted" if _was_promoted(standing) else found.judgement.decision if found.judgement else None
    if decision is not None and not (decision == "Promoted" and not _was_promoted(standing)):
        update["promotion_decision"] = decision
    return before.model_copy(update=update)


def _of_record(standing: Standing) -> dict[str, object]:
    term, holds = standing.term, in_production(standing)
    told = holds or (term is not None and term.end is not None)
    update: dict[str, object] = {}
    if term is not None and told:
        update["production_change"] = term.number
    if holds and term is not None:
        earlier = changes.previous(standing.family, term)
        update["history"] = [_span(one) for one in standing.family.terms[:REGISTRY_HISTORY]]
        update["previous_version"] = earlier[0].entry if earlier else None
    return update


def _span(term: Term) -> ProductionSpan:
    return ProductionSpan(
        entry=term.entry,
        version=term.version,
        start_time=term.start,
        end_time=term.end,
        reason=term.reason or None,
    )


def _phase(standing: Standing, found: Findings) -> tuple[RegistryPhase, str]:
    if found.wrong:
        return "Failed", found.wrong
    if found.serving.phase is not None:
        return found.serving.phase, found.serving.fields.get("message") or ""
    term = standing.term
    if term is not None and term.reason == ROLLED_BACK and standing.stage == "archived":
        return "RolledBack", f"{term.successor} is in production again"
    return "Registered", ""


def _registered(standing: Standing, found: Findings) -> Iterator[Said]:
    artifacts = standing.entry.spec.artifacts
    where = artifacts.s3_path or f"claim {artifacts.pvc_name}" + (
        f", {artifacts.sub_path}" if artifacts.sub_path else ""
    )
    if found.wrong:
        yield "ModelRegistered", "False", "InvalidSpec", found.wrong
        yield "SpecValid", "False", "Invalid", found.wrong
    else:
        yield "ModelRegistered", "True", "Registered", f"files: {where}"
    yield "ModelServing", *found.serving.condition


def _production(standing: Standing) -> Iterator[Said]:
    term, before = standing.term, find_condition(standing.entry.status.conditions, IN_PRODUCTION)
    if standing.unreadable:
        return
    if in_production(standing) and term is not None:
        yield (
            IN_PRODUCTION,
            "True",
            "InProduction",
            f"since {term.start}, change {term.number} of the family: {term.note}",
        )
    elif term is not None and term.end is not None and (not _told_end(standing) or _still_ended(standing)):
        successor = f", {term.successor} took its place" if term.successor else ""
        yield IN_PRODUCTION, "False", term.reason, f"from {term.start} to {term.end}{successor}"
    elif standing.stage == "archived" and not standing.holds:
        if before is None or before.reason not in ENDED:
            yield IN_PRODUCTION, "False", "Archived", "it was archived by hand"
    elif not standing.holds or before is None:
        yield IN_PRODUCTION, "False", "NotPromoted", f"its stage is {standing.stage}"


def _told_end(standing: Standing) -> bool:
    """Whether the status tells of the end of the newest term already."""
    before = find_condition(standing.entry.status.conditions, IN_PRODUCTION)
    return standing.confirmed and before is not None and before.status == "False"


def _still_ended(standing: Standing) -> bool:
    """Nothing was asked for since the term ended."""
    term, before = standing.term, find_condition(standing.entry.status.conditions, IN_PRODUCTION)
    if term is None or before is None or before.reason != term.reason:
        return False
    return standing.stage == "archived" or standing.entry.generation <= term.generation or standing.demoted


def _gate(standing: Standing, found: Findings) -> Iterator[Said]:
    """While it waits for its turn, of a promotion that is decided nothing is said: the record decides."""
    judgement, term = found.judgement, standing.term
    if in_production(standing) and term is not None and term.cause == "Promoted":
        yield "PromotionGate", "True", "Promoted", term.note
    elif judgement is not None and judgement.decision != "Promoted":
        yield "PromotionGate", "False", judgement.reason, judgement.message


def _told(standing: Standing, found: Findings) -> Iterator[Said]:
    term, back, entry = standing.term, found.back, standing.entry
    if back is not None and back.refused and not (back.refused == "NotStable" and back.why == "PolicyBreached"):
        yield ROLLED_BACK, "False", back.refused, f"{back.why}: {back.message}"
    elif term is not None and term.reason == ROLLED_BACK and standing.stage == "archived":
        yield ROLLED_BACK, "True", _why(standing, term), f"{term.successor} is in production again since {term.end}"
    if found.held:
        message = f"served by GryviaInferenceService {', '.join(found.held)}; it goes when that serves another entry or is deleted"
        yield "DeletionHeld", "True", "Served", message
    if found.ignored:
        yield "FieldsIgnored", "True", "NoEffect", found.ignored
    yield from _record(standing)
    lost = aliases.taken_over(standing.family, entry)
    if lost:
        said = "; ".join(
            f"{alias} points to {other}, which asked for it later" for alias, other in sorted(lost.items())
        )
        yield (
            "AliasesHeld",
            "False",
            "TakenOver",
            f"{said}; remove it from spec.aliases, and add it again to take it back",
        )
    elif entry.spec.aliases and not standing.unreadable and aliases.held(standing.family, entry.uid):
        yield "AliasesHeld", "True", "Held", "every alias in spec.aliases points here"


def _why(standing: Standing, term: Term) -> str:
    """PolicyBreached or Requested, as the note of the term that followed begins."""
    following = next((one for one in standing.family.terms if one.start == term.end and one.uid != term.uid), None)
    return following.note.partition(":")[0] if following is not None and following.cause == ROLLED_BACK else "Requested"


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


def _passing(standing: Standing) -> tuple[str, ...]:
    """Conditions that go when nothing is said of them. A rollback is told of as long as the entry is as it left it."""
    gate = () if standing.stage != "dev" and standing.entry.spec.promotion_policy else ("PromotionGate",)
    back = () if standing.stage in ("archived", "production") else (ROLLED_BACK,)
    return (*PASSING, *gate, *back)


def _was_promoted(standing: Standing) -> bool:
    term = standing.term
    return in_production(standing) and term is not None and term.cause == "Promoted"
