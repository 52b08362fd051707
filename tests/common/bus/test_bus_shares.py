"""Dealing partitions: evenly, with the fewest moves, and the same on every replica."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.bus.shares import share, step
from gryvia_common.bus.subjects import PARTITIONS

members = st.sampled_from([f"pod-{number}/{number:x}" for number in range(9)])
live_sets = st.frozensets(members, min_size=1, max_size=9)
claims_maps = st.dictionaries(st.integers(0, PARTITIONS - 1), members)


@given(claims_maps, live_sets)
def test_every_partition_has_a_living_holder_and_the_split_is_even(
    claims: dict[int, str], live: frozenset[str]
) -> None:
    shares = share(claims, live)
    counts = Counter(shares.values())
    assert set(shares) == set(range(PARTITIONS))
    assert set(counts) == live
    assert max(counts.values()) - min(counts.values()) <= 1


@given(claims_maps, live_sets)
def test_what_it_answers_it_confirms(claims: dict[int, str], live: frozenset[str]) -> None:
    shares = share(claims, live)
    assert share(shares, live) == shares


@given(claims_maps, live_sets)
def test_no_even_split_moves_fewer_living_claims(claims: dict[int, str], live: frozenset[str]) -> None:
    shares = share(claims, live)
    moved = sum(1 for part, holder in claims.items() if holder in live and shares[part] != holder)
    least, odd = divmod(PARTITIONS, len(live))
    counts = sorted((sum(1 for holder in claims.values() if holder == one) for one in live), reverse=True)
    fewest = sum(max(0, count - least - (place < odd)) for place, count in enumerate(counts))
    assert moved == fewest


@given(live_sets, members)
def test_a_newcomer_takes_only_its_own_share(live: frozenset[str], newcomer: str) -> None:
    before = share({}, live - {newcomer}) if live - {newcomer} else {}
    after = share(before, live | {newcomer})
    moved = {part for part in before if before[part] != after[part]}
    assert all(after[part] == newcomer for part in moved)


@given(live_sets)
def test_who_leaves_moves_only_what_it_held(live: frozenset[str]) -> None:
    leaver = min(live)
    before = share({}, live)
    after = share(before, live - {leaver})
    assert all(before[part] == leaver for part in after if before[part] != after[part])


@given(claims_maps, live_sets, members)
def test_a_step_never_touches_a_living_claim_of_another(claims: dict[int, str], live: frozenset[str], me: str) -> None:
    plan = step(claims, live | {me}, me, frozenset())
    for part, holder in claims.items():
        if holder in live and holder != me:
            assert plan.claims[part] == holder


@given(claims_maps, live_sets, members)
def test_nothing_is_handed_on_before_it_is_released(claims: dict[int, str], live: frozenset[str], me: str) -> None:
    everybody = live | {me}
    plan = step(claims, everybody, me, frozenset())
    assert all(plan.claims[part] == me for part, holder in claims.items() if holder == me)
    after = step(claims, everybody, me, plan.release)
    assert all(after.claims[part] != me for part in plan.release)
    assert not after.release


@given(claims_maps, live_sets)
def test_replicas_taking_turns_come_to_rest(claims: dict[int, str], live: frozenset[str]) -> None:
    current = dict(claims)
    for _ in range(3):
        for me in sorted(live):
            current = step(current, live, me, step(current, live, me, frozenset()).release).claims
    assert current == share(current, live)
    assert all(not step(current, live, me, frozenset()).release for me in live)
