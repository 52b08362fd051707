"""Whatever people ask of a model family and whatever goes wrong meanwhile: exactly one production entry at every instant, a history
without gaps that is only added to, everything follows the record in the end, and then there is silence.

A life that fails is named by its seed; `smallest(random_life(seed))` is what it takes.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

import pytest
from promotions import CALM, FAMILY, Life, RecordWatch, Step, follows, live
from workers import live_all

from gryvia_common.kinds.families import Family, Holder, Term

SEED = int(os.environ.get("GRYVIA_FAULTS_SEED") or 20260301)
MANY = bool(os.environ.get("GRYVIA_FAULTS"))
LIVES = 1200 if MANY else 30
ENTRY = {"modelName": FAMILY, "artifacts": {"pvcName": "models"}, "promotionPolicy": {"metric": "accuracy"}}


@pytest.mark.timeout(600)
def test_one_production_entry_at_every_instant(
    pool: ProcessPoolExecutor | None, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = live_all(pool, (f"family/{SEED}/{number}" for number in range(LIVES)))
    if MANY:
        with capsys.disabled():
            print(f"families: {LIVES} lives, seed {SEED}, {len(wrong)} wrong")
    assert not wrong


def test_a_replica_whose_view_of_the_record_is_old_takes_back_nothing_that_was_told() -> None:
    """Entry and record come on two watches. An entry that had told of its promotion told that it never was, and then, when it was
    replaced, of an archiving by hand."""
    first = Step("create", "v0", {**ENTRY, "version": "v0", "stage": "staging", "metadata": {"accuracy": "0.9"}}, 5.0)
    second = Step("create", "v2", {**ENTRY, "version": "v2", "stage": "staging", "metadata": {"accuracy": "0.5"}}, CALM)
    for at in range(14):
        assert not live(Life((first, second), ((0, "hang-done"),), (("registry", at, "crash-stale"),), 1)), at


def term(entry: str, number: int, start: int, end: int | None = None, successor: str = "") -> Term:
    def at(minute: int) -> str:
        return f"2026-03-01T12:{minute:02}:00Z"

    return Term(
        entry=entry,
        uid=f"uid-{entry}",
        version="1",
        number=number,
        generation=1,
        stage="staging",
        start=at(start),
        cause="Promoted",
        end=None if end is None else at(end),
        reason="" if end is None else "Replaced",
        successor=successor,
    )


def family(change: int, *terms: Term) -> Family:
    open_one = terms[0] if terms and terms[0].end is None else None
    holder = Holder(entry=open_one.entry, uid=open_one.uid) if open_one else None
    return Family(name=FAMILY, change=change, production=holder, terms=terms)


def test_the_watch_sees_what_would_be_wrong() -> None:
    before = family(1, term("a", 1, 10))
    assert not list(follows(before, family(2, term("b", 2, 12), term("a", 1, 10, 12, "b"))))
    for after, said in [
        (family(2, term("b", 2, 13), term("a", 1, 10, 12, "b")), "gap"),
        (family(2, term("b", 2, 12), term("a", 1, 11, 12, "b")), "rewritten"),
        (family(2, term("b", 2, 12)), "rewritten"),
        (family(1, term("a", 1, 10)), "change 1 after 1"),
    ]:
        assert said in " ".join(follows(before, after)), said
    assert RecordWatch().wrong == []
