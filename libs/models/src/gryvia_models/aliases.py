"""Aliases: names that point to one entry of the family each, moved in its record.

An entry asks for an alias by listing it. The newest to ask gets it, in the same write that takes it from who had it; that one keeps
it in its spec and is told so, and asks again by removing it and adding it again. (Rejected: the older claim wins. Moving
`champion` would then need two edits, and between them it would point nowhere.)
"""

from __future__ import annotations

from collections.abc import Sequence

from gryvia_common.kinds.families import Family, Holder
from gryvia_models import family as changes


def aligned(family: Family, wanted: Sequence[str], who: Holder) -> Family:
    """The record with this entry's aliases as its spec lists them."""
    for alias in wanted:
        found = family.aliases.get(alias)
        if found is None or who.uid not in (found.uid, *found.lost):
            family = changes.point(family, alias, who)
    for alias, found in family.aliases.items():
        if alias not in wanted and who.uid in (found.uid, *found.lost):
            family = changes.let_go(family, alias, who.uid)
    return family


def held(family: Family, uid: str) -> list[str]:
    return sorted(alias for alias, found in family.aliases.items() if found.uid == uid)


def taken_over(family: Family, uid: str) -> dict[str, str]:
    """Aliases that the entry lists and another entry has, with its name."""
    return {alias: found.entry for alias, found in sorted(family.aliases.items()) if uid in found.lost}
