"""What happened to an entry since its status was written: domain events for the platform, Events for `kubectl describe`.

Only a pass that sees the record say so tells of it, so no event tells of a promotion that another entry won. An entry that was
replaced before it could say that it had been promoted says both.
"""

from __future__ import annotations

from collections.abc import Iterator

from gryvia_common.bus import events
from gryvia_common.kinds.conditions import find_condition
from gryvia_common.kinds.families import Term
from gryvia_common.kinds.modelregistry import GryviaModelRegistryStatus
from gryvia_common.runtime.plan import Record
from gryvia_registry import family as changes
from gryvia_registry.standing import Standing
from gryvia_registry.status import IN_PRODUCTION, ROLLED_BACK, in_production


def emitted(standing: Standing, status: GryviaModelRegistryStatus) -> Iterator[events.DomainEvent]:
    """`status`: the one that records it."""
    term = standing.term
    if standing.entry.status.registered_at is None:
        yield _event(events.ModelRegistered, standing)
    if term is not None and not standing.unreadable:
        yield from _of_term(standing, term)
    reason = _reason(status)
    if reason == "Archived" and _reason(standing.entry.status) != reason:
        number = f"by-hand/{standing.entry.generation}"
        yield _event(events.ModelArchived, standing, transition=number, message="it was archived by hand")


def recorded(standing: Standing, status: GryviaModelRegistryStatus) -> Iterator[Record]:
    """What changed in the conditions that a person asks about."""
    before = standing.entry.status
    for type, reasons in ((IN_PRODUCTION, ("InProduction", changes.REPLACED, changes.RELEASED)), (ROLLED_BACK, None)):
        now, then = find_condition(status.conditions, type), find_condition(before.conditions, type)
        if now is None or (then is not None and (then.reason, then.message) == (now.reason, now.message)):
            continue
        if type == ROLLED_BACK:
            refused = now.status == "False"
            said = f"{now.reason}: {now.message}"
            yield Record("RollbackRefused" if refused else "RolledBack", said, "Warning")
        elif reasons is not None and now.reason in reasons:
            yield Record("Promoted" if now.status == "True" else now.reason, now.message)
    if status.promotion_decision == "Rejected" and before.promotion_decision != "Rejected":
        gate = find_condition(status.conditions, "PromotionGate")
        yield Record("PromotionRejected", gate.message if gate else "", "Warning")


def _of_term(standing: Standing, term: Term) -> Iterator[events.DomainEvent]:
    before = find_condition(standing.entry.status.conditions, IN_PRODUCTION)
    ended = term.end is not None
    if not standing.confirmed and (ended or in_production(standing)):
        earlier = [one for one in standing.family.terms if one.number < term.number]
        handed_over = bool(earlier) and earlier[0].end == term.start
        yield _event(
            events.ModelPromoted,
            standing,
            transition=str(term.number),
            message=term.note,
            previous=earlier[0].entry if handed_over else "",
            auto_serve=standing.entry.spec.auto_serve,
        )
    told = standing.confirmed and before is not None and before.status == "False"
    if ended and not told:
        kind = events.ModelRolledBack if term.reason == changes.ROLLED_BACK else events.ModelArchived
        more = {"reason": _rolled_back(standing, term)} if kind is events.ModelRolledBack else {}
        yield _event(
            kind, standing, transition=str(term.number), message=term.reason, replaced_by=term.successor, **more
        )


def _rolled_back(standing: Standing, term: Term) -> str:
    following = next((one for one in standing.family.terms if one.number > term.number and one.start == term.end), None)
    return following.note.partition(":")[0] if following is not None else ""


def _event(kind: type[events.ModelEvent], standing: Standing, **more: object) -> events.ModelEvent:
    entry = standing.entry
    values: dict[str, object] = {
        "namespace": entry.namespace,
        "name": entry.name,
        "uid": entry.uid,
        "generation": entry.generation,
        "model_name": entry.spec.model_name,
        "version": entry.spec.version,
        "stage": standing.stage,
        **more,
    }
    return kind.model_validate(values)


def _reason(status: GryviaModelRegistryStatus) -> str:
    found = find_condition(status.conditions, IN_PRODUCTION)
    return found.reason if found is not None else ""
