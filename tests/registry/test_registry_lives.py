"""Whole lives of families in random order, with replicas that see late, act on old views, and die between any two effects."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from .invariants import check_records

LIVES = settings(
    max_examples=300 if os.environ.get("GRYVIA_FAULTS") else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
NAMES = ["a", "b", "c", "d"]
STAGES = ["dev", "staging", "staging", "staging", "production", "archived"]
ALIASES = [[], [], ["x"], ["y"], ["x", "y"]]
PLURALS = ["gryviamodelregistries", "configmaps", "gryviainferenceservices"]


def random_entry(chance):
    spec = {"metadata": {"acc": f"{chance.random():.2f}"}, "aliases": chance.choice(ALIASES)}
    if chance.random() < 0.7:
        spec["promotionPolicy"] = {"metric": "acc", "requireApproval": chance.random() < 0.2}
    if chance.random() < 0.5:
        spec["rollbackPolicy"] = {"metric": "live", "threshold": "0.5"}
    return {**spec, "autoServe": chance.random() < 0.4}


def somebody_does_something(cluster, chance):
    name = chance.choice(NAMES)
    exists = (PLURALS[0], name) in cluster.objects
    what = chance.choice(
        ["stage", "metric", "alias", "delete", "approve", "rollback", "breach", "serve", "unserve", "note"]
    )
    if not exists:
        cluster.entry(name, stage=chance.choice(STAGES), **random_entry(chance))
    elif what == "stage":
        cluster.edit(name, stage=chance.choice(STAGES))
    elif what == "metric":
        cluster.edit(name, metadata={"acc": f"{chance.random():.2f}"})
    elif what == "breach":
        cluster.edit(name, metadata={"live": chance.choice(["0.1", "0.9", "nan"])})
    elif what == "alias":
        cluster.edit(name, aliases=chance.choice(ALIASES))
    elif what == "delete":
        cluster.delete(PLURALS[0], name)
    elif what == "approve":
        cluster.annotate(name, approval='{"decision": "Approved", "by": "ada"}')
    elif what == "rollback":
        cluster.annotate(name, rollback_requested="now")
    elif what == "serve":
        cluster.service("svc", name)
    elif what == "unserve" and (PLURALS[2], "svc") in cluster.objects:
        cluster.delete(PLURALS[2], "svc")
    elif what == "note":
        cluster.edit(name, description=f"{chance.random()}")


def somebody_works(cluster, chance):
    replica = chance.choice(cluster.replicas)
    roll = chance.random()
    if roll < 0.05:
        cluster.replicas.remove(replica)
        cluster.replica()
    elif roll < 0.45:
        replica.deliver(chance.choice(PLURALS), chance.randint(1, 5))
    else:
        replica.die_before = chance.choice([-1, -1, -1, 0, 1, 2, 3])
        try:
            replica.step(chance.choice(NAMES))
        except Exception as death:
            if type(death).__name__ != "Died":
                raise
        replica.die_before = -1


def check_settled(cluster):
    entries = {name: obj for (plural, name), obj in cluster.objects.items() if plural == PLURALS[0]}
    if ("configmaps", "gryvia-family-m") not in cluster.objects:
        assert not any(obj["spec"].get("stage") == "production" for obj in entries.values())
        return
    family = cluster.family
    holder = family.production
    staged = [name for name, obj in entries.items() if obj["spec"].get("stage") == "production"]
    going = [name for name in staged if not cluster.status(name).get("productionChange")]
    live = [name for name in staged if "deletionTimestamp" not in entries[name]["metadata"]]
    assert live == [name for name in live if holder and holder.entry == name]
    assert set(staged) - set(live) <= {holder.entry if holder else "", *going}, (
        "what waits for its deletion is archived too"
    )
    if holder:
        assert entries[holder.entry]["metadata"]["uid"] == holder.uid
        if "deletionTimestamp" not in entries[holder.entry]["metadata"]:
            assert cluster.condition(holder.entry, "InProduction")[0] == "True"
    for alias, held in family.aliases.items():
        assert entries[held.entry]["metadata"]["uid"] == held.uid
        assert alias in entries[held.entry]["spec"]["aliases"]
    for name, obj in entries.items():
        if "deletionTimestamp" in obj["metadata"]:
            assert cluster.condition(name, "DeletionHeld")[0] == "True"
            continue
        assert set(obj["spec"].get("aliases") or ()) <= family.aliases.keys()
        assert obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
        assert "gryvia.io/rollback-requested" not in (obj["metadata"].get("annotations") or {})
    assert not [
        one for one in family.demoting if one.entry in entries and entries[one.entry]["metadata"]["uid"] == one.uid
    ]
    alive = {obj["metadata"]["uid"] for obj in entries.values()}
    newest = {}
    for term in family.terms:
        newest.setdefault(term.uid, term)
    told = Counter(event.id for event in cluster.events)
    for uid, term in newest.items():
        if uid in alive:
            assert told[f"{uid}/model/promoted/{term.number}"], f"nobody was told of {term}"
            if term.end:
                assert told[f"{uid}/model/archived/{term.number}"] or told[f"{uid}/model/rolledback/{term.number}"]


def check_quiet(cluster):
    writes = cluster.writes.total()
    cluster.replicas.clear()
    cluster.replica()
    cluster.after(1000)
    cluster.settle()
    assert cluster.writes.total() == writes


@LIVES
@example(seed=486, replicas=1, length=53)
@example(seed=825, replicas=1, length=44)
@given(seed=st.integers(0, 2**32), replicas=st.integers(1, 3), length=st.integers(5, 120))
def test_any_life_of_a_family_has_one_production_entry_at_every_instant_and_comes_to_rest(
    new_cluster, seed, replicas, length
):
    chance = random.Random(seed)
    cluster = new_cluster()
    for _ in range(replicas):
        cluster.replica()
    for _ in range(length):
        cluster.after(chance.choice([0, 0, 1, 60]))
        for _ in range(chance.randint(0, 2)):
            somebody_does_something(cluster, chance)
        for _ in range(chance.randint(1, 8)):
            somebody_works(cluster, chance)
    cluster.settle()
    check_records(cluster.families)
    check_settled(cluster)
    check_quiet(cluster)
    # And it still does what a person asks for.
    name = chance.choice(NAMES)
    obj = cluster.objects.get((PLURALS[0], name)) or cluster.entry(name)
    if "deletionTimestamp" in obj["metadata"]:
        return
    cluster.edit(name, stage="dev", rollbackPolicy=None, promotionPolicy=None)
    cluster.settle()
    cluster.edit(name, stage="production")
    before = cluster.families[-1].change if cluster.families else 0
    cluster.settle()
    assert any(term.entry == name and term.number > before for term in cluster.family.terms), (
        "it was not even for a moment"
    )
    cluster.edit(name, stage="archived")
    cluster.settle()
    assert cluster.production != name
    assert cluster.stage(name) == "archived"
    check_records(cluster.families)


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_hundred_at_once_with_replicas_that_take_turns(new_cluster, replicas):
    """Every promotion that the record decided is in the history, gapless; nobody else is in production."""
    chance = random.Random(replicas)
    cluster = new_cluster()
    for _ in range(replicas):
        cluster.replica()
    scores = list(range(100))
    chance.shuffle(scores)
    names = [f"v{number}" for number in scores]
    for number in scores:
        policy = {"metric": "acc", "minDelta": "0.005"}
        cluster.entry(f"v{number}", stage="staging", metadata={"acc": f"{number / 100}"}, promotionPolicy=policy)
    for replica in cluster.replicas:
        replica.deliver()
    for _ in range(3000):
        replica = chance.choice(cluster.replicas)
        replica.step(chance.choice(names))
        replica.deliver(chance.choice(PLURALS), chance.randint(0, 40))
    cluster.settle()
    check_records(cluster.families)
    assert cluster.production == "v99"
    assert [name for name in names if cluster.stage(name) == "production"] == ["v99"]
    promoted = [term.entry for term in cluster.family.terms]
    assert sorted(cluster.happened("promoted")) == sorted(promoted)
    assert sorted(name for name in names if cluster.stage(name) == "archived") == sorted(promoted[1:])
    assert cluster.writes.total() < 1500, cluster.writes
    check_quiet(cluster)
