"""What holds of a family's record whatever happens, over all its versions in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.families import Family


def check_records(families: Sequence[Family]) -> None:
    """One production entry or none at every version; history only grows; what has ended stays as it was told."""
    for before, after in pairwise(families):
        if after.change == 0:
            continue
        known = {term.number: term for term in after.terms}
        for term in before.terms:
            same = known[term.number]
            assert (same.entry, same.uid, same.start) == (term.entry, term.uid, term.start)
            assert term.end is None or (same.end, same.reason) == (term.end, term.reason)
        assert after.change > before.change or after == before
        for newer, older in pairwise(after.terms):
            assert older.end is not None
            assert parse_timestamp(older.end) <= parse_timestamp(newer.start)
            if older.reason in ("Replaced", "RolledBack"):
                assert (older.end, older.successor) == (newer.start, newer.entry), (
                    "a gap where one took over from the other"
                )
