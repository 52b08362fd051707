"""What may happen to a family's record: pure functions from a record to the next one.

Each makes one change of it, so whatever is read between two of them has one production entry or none, and terms that neither
overlap nor, from one entry to the next, leave a gap. Times never run backwards, also when the clocks of two replicas differ.
"""

from __future__ import annotations

from datetime import datetime

from gryvia_common.kinds.conditions import parse_timestamp, timestamp
from gryvia_common.kinds.families import TERMS, Alias, Cause, Family, Holder, Term
from gryvia_common.kinds.modelregistry import REGISTRY_HISTORY, ProductionSpan, Stage

REPLACED, ROLLED_BACK, RELEASED, DELETED = "Replaced", "RolledBack", "Released", "Deleted"
LONGEST_NOTE = 300


def claim(
    family: Family,
    who: Holder,
    *,
    version: str,
    generation: int,
    stage: Stage,
    cause: Cause,
    now: datetime,
    note: str,
    approved_by: str = "",
    ended: str = REPLACED,
) -> Family:
    """The entry is in production from now on; the one before it is to be archived. `ended`: why its term ends."""
    at, number, before = _not_before(family, now), family.change + 1, family.current
    term = Term(
        entry=who.entry,
        uid=who.uid,
        version=version,
        number=number,
        generation=generation,
        stage=stage,
        start=at,
        cause=cause,
        note=note[:LONGEST_NOTE],
        approved_by=approved_by,
    )
    demoting = tuple(one for one in family.demoting if one.uid != who.uid)
    if before is not None:
        demoting += (Holder(entry=before.entry, uid=before.uid),)
        family = _ended(family, at, ended, who.entry)
    return _changed(
        family,
        production=Holder(entry=who.entry, uid=who.uid),
        demoting=demoting,
        terms=(term, *family.terms)[:TERMS],
    )


def release(family: Family, reason: str, now: datetime, *, generation: int = 0) -> Family:
    """Nothing is in production from now on. `generation`: of the entry's spec that asked for it."""
    current = family.current
    if current is None:
        return family
    known = current.model_copy(update={"generation": max(current.generation, generation)})
    family = _changed(family, production=None, terms=(known, *family.terms[1:]))
    return _ended(family, _not_before(family, now), reason, "")


def settled(family: Family, uid: str, *, generation: int = 0) -> Family:
    """The entry's stage follows the record by now: an older view of it asks for nothing."""
    found = family.newest(uid)
    terms = tuple(
        term.model_copy(update={"generation": max(term.generation, generation)}) if term is found else term
        for term in family.terms
    )
    return _changed(family, demoting=tuple(one for one in family.demoting if one.uid != uid), terms=terms)


def without(family: Family, gone: Holder, now: datetime) -> Family:
    """The entry is deleted: nothing names it any more but the history."""
    if family.production is not None and family.production.uid == gone.uid:
        family = release(family, DELETED, now)
    if any(one.uid == gone.uid for one in family.demoting):
        family = settled(family, gone.uid)
    for alias, held in family.aliases.items():
        if gone.uid in (held.uid, *held.lost):
            family = let_go(family, alias, gone.uid)
    return family


def point(family: Family, alias: str, who: Holder) -> Family:
    """The alias points to the entry from now on; who had it knows that it lost it."""
    before = family.aliases.get(alias)
    lost = (*before.lost, before.uid) if before is not None else ()
    moved = Alias(entry=who.entry, uid=who.uid, lost=tuple(uid for uid in lost if uid != who.uid))
    return _changed(family, aliases={**family.aliases, alias: moved})


def let_go(family: Family, alias: str, uid: str) -> Family:
    """The entry does not list the alias any more. Of a holder: whoever else lists it may have it."""
    found = family.aliases[alias]
    if found.uid == uid:
        return _changed(family, aliases={name: one for name, one in family.aliases.items() if name != alias})
    kept = found.model_copy(update={"lost": tuple(one for one in found.lost if one != uid)})
    return _changed(family, aliases={**family.aliases, alias: kept})


def previous(family: Family, term: Term) -> list[Term]:
    """What was in production before this term, newest first, each entry once; without what was rolled back or taken out by
    hand when it last was."""
    seen = {term.uid}
    found = []
    for one in family.terms:
        if one.number < term.number and one.uid not in seen:
            seen.add(one.uid)
            if one.reason not in (ROLLED_BACK, RELEASED):
                found.append(one)
    return found


def predecessor(family: Family, term: Term) -> str:
    """The entry that handed its place over to this term; empty when nobody did."""
    earlier = next((one for one in family.terms if one.number < term.number), None)
    return (
        earlier.entry if earlier is not None and earlier.successor == term.entry and earlier.end == term.start else ""
    )


def rolled_back_for(family: Family, term: Term) -> str:
    """PolicyBreached or Requested: why the term ended, by the note of the one that followed."""
    later = [one for one in family.terms if one.number > term.number]
    return later[-1].note.partition(":")[0] if later and later[-1].cause == ROLLED_BACK else ""


def spans(family: Family) -> list[ProductionSpan]:
    """The newest of the history, as a status has it."""
    return [
        ProductionSpan(
            entry=term.entry,
            version=term.version,
            start_time=term.start,
            end_time=term.end,
            reason=term.reason or None,
        )
        for term in family.terms[:REGISTRY_HISTORY]
    ]


def _ended(family: Family, at: str, reason: str, successor: str) -> Family:
    ended = family.terms[0].model_copy(update={"end": at, "reason": reason, "successor": successor})
    return family.model_copy(update={"production": None, "terms": (ended, *family.terms[1:])})


def _changed(family: Family, **changes: object) -> Family:
    return family.model_copy(update={"change": family.change + 1, **changes})


def _not_before(family: Family, now: datetime) -> str:
    last = (
        max((t for t in (family.terms[0].start, family.terms[0].end) if t), key=parse_timestamp)
        if family.terms
        else None
    )
    text = timestamp(now)
    return last if last is not None and parse_timestamp(last) > parse_timestamp(text) else text
