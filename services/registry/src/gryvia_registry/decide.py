"""The pass of a registry entry.

    being deleted   held while a service needs it; then the record forgets it, then the finalizer goes
    otherwise       the record changes by what the entry asks for; the stages follow the record; the status tells of both

What an entry asks for counts only once conditions were written for the same generation: that write carries the
resourceVersion, so it proves that the entry was seen as it is. status.observedGeneration follows when what the spec asks for is
done. The status tells what the record says, never what is about to be written.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gryvia_common.kinds.conditions import set_condition
from gryvia_common.kinds.families import ParseFamily, record_manifest
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY, GryviaModelRegistryStatus
from gryvia_common.kube.objects import Json, is_deleting
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.parsing import parse_object
from gryvia_common.runtime.plan import Apply, Plan
from gryvia_common.runtime.world import World
from gryvia_models import problems
from gryvia_models.serving import Serving, mirror
from gryvia_registry import events, moves, rollback, serving
from gryvia_registry.entry import Entry, guard, guarded
from gryvia_registry.rollback import REQUESTED
from gryvia_registry.standing import Standing, read
from gryvia_registry.status import Findings, status_of


def decide(entry: Entry, world: World, now: datetime, *, parse: ParseFamily) -> Plan:
    standing = read(entry, world, now, parse)
    if standing.behind:
        return Plan(actions=standing.looks())
    if entry.deleting:
        return _leave(standing)
    wrong = "; ".join(problems.of_entry(entry.spec))
    judgement = None if wrong or standing.unreadable else moves.judged(standing)
    back = None if wrong or standing.unreadable or standing.demoted else rollback.wanted(standing)
    believed = not standing.unreadable
    family = moves.next_family(standing, judgement, back, valid=not wrong) if believed else standing.family
    changed = family != standing.family
    stages = moves.stage_patches(standing) if believed and not changed else ()
    found = Findings(
        serving=_serving(standing),
        pending=changed or bool(stages),
        judgement=judgement,
        back=back,
        wrong=wrong,
        ignored="; ".join(problems.without_effect(entry.spec)),
    )
    status = status_of(standing, found)
    needed = bool(serving.dependants(entry, world)) or (standing.holds and entry.spec.auto_serve)
    metadata = guard(entry.raw, wanted=needed)
    changed = changed and standing.proven
    if changed and standing.record is not None:
        return _told(standing, status, Plan(patch=moves.record_patch(standing, family), actions=standing.looks()))
    if back is not None and back.refused and entry.status == status and REQUESTED in entry.annotations:
        metadata = {**(metadata or {}), "annotations": {REQUESTED: None}}
    # Empty: what is asked for is a change of it.
    record = Apply(CONFIG_MAPS, record_manifest(entry.spec.model_name, entry.namespace), owned=False)
    plan = Plan(apply=(record,) if changed else (), patch=stages, actions=standing.looks(), metadata=metadata)
    return _told(standing, status, plan)


def invalid(raw: Json, message: str, now: datetime) -> Plan:
    """A spec that does not parse asks for nothing; what is in production stays there."""
    if is_deleting(raw):
        return Plan(metadata=guard(raw, wanted=False))
    known = {"modelName": "unknown", "version": "unknown", "artifacts": {"s3Path": "s3://unknown"}}
    entry: Entry = parse_object(MODEL_REGISTRY, {**raw, "spec": known})
    said = set_condition(
        entry.status.conditions, "SpecValid", "False", "Invalid", message, now=now, generation=entry.generation
    )
    changes = {"phase": "Failed", "message": message, "conditions": said, "observed_generation": entry.generation}
    return Plan(status=entry.status.model_copy(update=changes))


def _told(standing: Standing, status: GryviaModelRegistryStatus, plan: Plan) -> Plan:
    """The plan with the status, and the events that go out before it."""
    emitted, recorded = tuple(events.emitted(standing, status)), tuple(events.recorded(standing, status))
    return replace(plan, status=status, emit=emitted, record=recorded)


def _serving(standing: Standing) -> Serving:
    entry = standing.entry
    services = serving.services_of(entry, standing.world)
    return mirror(entry.name, entry.spec, services, in_production=standing.in_production)


def _leave(standing: Standing) -> Plan:
    entry = standing.entry
    served = tuple(serving.dependants(entry, standing.world)) if guarded(entry.raw) else ()
    family = moves.departed(standing, served=bool(served))
    patch = moves.record_patch(standing, family)
    if patch and not standing.unreadable and standing.world.refusal(CONFIG_MAPS, standing.record_name) is None:
        return Plan(patch=patch, actions=standing.looks())
    status = status_of(standing, Findings(serving=_serving(standing), held=served))
    plan = Plan(
        patch=moves.stage_patches(standing) if served and standing.demoted else (),
        metadata=None if served else guard(entry.raw, wanted=False),
        actions=standing.looks(),
    )
    return _told(standing, status, plan)
