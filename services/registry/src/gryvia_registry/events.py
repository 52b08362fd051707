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
from gryvia_models import family as changes
from gryvia_registry.standing import IN_PRODUCTION, Standing
from gryvia_registry.status import ROLLED_BACK

SHOWN = ("InProduction", changes.REPLACED, changes.RELEASED)


def emitted(standing: Standing, status: GryviaModelRegistryStatus) -> Iterator[events.DomainEvent]:
    """`status`: the one that records it."""
    before, now = standing.said(IN_PRODUCTION), find_condition(status.conditions, IN_PRODUCTION)
    if standing.entry.status.registered_at is None:
        yield _event(events.ModelRegistered, standing)
    if standing.term is not None and not standing.unreadable:
        yield from _of_term(standing, standing.term)
    if now is not None and now.reason == "Archived" and (before is None or before.reason != "Archived"):
        number = f"by-hand/{standing.entry.generation}"
        yield _event(events.ModelArchived, standing, transition=number, message=now.message)


def recorded(standing: Standing, status: GryviaModelRegistryStatus) -> Iterator[Record]:
    """What changed of that which a person asks about."""
    for type in (IN_PRODUCTION, ROLLED_BACK):
        now, then = find_condition(status.conditions, type), standing.said(type)
        if now is None or (then is not None and (then.reason, then.message) == (now.reason, now.message)):
            continue
        if type == ROLLED_BACK:
            reason = "RollbackRefused" if now.status == "False" else "RolledBack"
            yield Record(reason, f"{now.reason}: {now.message}", "Warning")
        elif now.reason in SHOWN:
            yield Record("Promoted" if now.status == "True" else now.reason, now.message)
    if status.promotion_decision == "Rejected" and standing.entry.status.promotion_decision != "Rejected":
        gate = find_condition(status.conditions, "PromotionGate")
        yield Record("PromotionRejected", gate.message if gate else "", "Warning")


def _of_term(standing: Standing, term: Term) -> Iterator[events.DomainEvent]:
    number = str(term.number)
    if not standing.confirmed and (term.end is not None or standing.in_production):
        yield _event(
            events.ModelPromoted,
            standing,
            transition=number,
            message=term.note,
            previous=changes.predecessor(standing.family, term),
            auto_serve=standing.entry.spec.auto_serve,
        )
    if term.end is None or standing.told_end:
        return
    more: dict[str, object] = {"transition": number, "message": term.reason, "replaced_by": term.successor}
    if term.reason == changes.ROLLED_BACK:
        reason = changes.rolled_back_for(standing.family, term)
        yield _event(events.ModelRolledBack, standing, reason=reason, **more)
    else:
        yield _event(events.ModelArchived, standing, **more)


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
