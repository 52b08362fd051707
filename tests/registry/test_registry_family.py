"""What a family does, on values: the way to production, by policy, by hand and back."""

from __future__ import annotations

import json

import pytest

POLICY = {"metric": "acc", "minDelta": "0.002"}


def test_the_first_production_entry_claims_the_family_and_a_better_one_in_staging_replaces_it(cluster):
    cluster.entry("v1", stage="production", metadata={"acc": "0.913"})
    cluster.settle()
    assert cluster.production == "v1"
    assert cluster.condition("v1", "InProduction")[:2] == ("True", "InProduction")
    cluster.after(60)
    cluster.entry("v2", stage="staging", metadata={"acc": "0.921"}, promotionPolicy=POLICY)
    cluster.settle()
    assert cluster.production == "v2"
    assert [cluster.stage(name) for name in ("v1", "v2")] == ["archived", "production"]
    assert cluster.status("v2")["promotionDecision"] == "Promoted"
    assert cluster.condition("v2", "PromotionGate")[:2] == ("True", "Promoted")
    assert "0.921 against 0.913 of v1: better by 0.008" in cluster.condition("v2", "PromotionGate")[2]
    assert cluster.condition("v1", "InProduction")[:2] == ("False", "Replaced")
    assert "v2 took its place" in cluster.condition("v1", "InProduction")[2]
    status = cluster.status("v2")
    assert status["previousVersion"] == "v1"
    assert [(one["entry"], one["startTime"], one.get("endTime")) for one in status["history"]] == [
        ("v2", "2026-01-01T00:01:00Z", None),
        ("v1", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
    ]
    assert "history" not in cluster.status("v1")
    assert cluster.happened("registered") == ["v1", "v2"]
    assert cluster.happened("promoted") == ["v1", "v2"]
    assert cluster.happened("archived") == ["v1"]
    assert all(
        cluster.status(name)["observedGeneration"] == cluster.get(name)["metadata"]["generation"]
        for name in ("v1", "v2")
    )


def test_what_is_applied_at_once_is_judged_after_who_asks_by_hand(cluster):
    cluster.entry("z-old", stage="production", metadata={"acc": "0.913"})
    cluster.entry("a-new", stage="staging", metadata={"acc": "0.921"}, promotionPolicy=POLICY)
    cluster.settle()
    assert cluster.happened("promoted") == ["z-old", "a-new"], "although the pass of a-new came first"
    assert cluster.production == "a-new"
    assert cluster.stage("z-old") == "archived"


def test_who_asks_by_hand_and_cannot_have_it_holds_up_nobody(cluster):
    cluster.entry("z-broken", stage="production", artifacts={"pvcName": "Not A Name"})
    cluster.entry("a-new", stage="staging", metadata={"acc": "0.921"}, promotionPolicy=POLICY)
    cluster.settle()
    assert cluster.condition("z-broken", "SpecValid")[0] == "False"
    assert cluster.production == "a-new"


def test_a_settled_family_causes_no_writes(cluster):
    cluster.entry("v1", stage="production", metadata={"acc": "0.9"}, aliases=["champion"])
    cluster.entry("v2", stage="staging", metadata={"acc": "0.8"}, promotionPolicy=POLICY)
    cluster.entry("v3")
    cluster.settle()
    writes = cluster.writes.total()
    for _ in range(3):
        cluster.after(3600)
        cluster.replicas.clear()
        cluster.replica()
        cluster.settle()
    assert cluster.writes.total() == writes


def test_the_archive_is_written_before_the_new_stage(cluster):
    seen = []
    original = cluster.put

    def put(id, obj):
        stored = original(id, obj)
        seen.append(
            sum(
                one["spec"].get("stage") == "production"
                for (plural, _), one in cluster.objects.items()
                if plural == id[0] and "spec" in one
            )
        )
        return stored

    cluster.put = put
    cluster.entry("v1", stage="production", metadata={"acc": "0.1"})
    cluster.settle()
    cluster.entry("v2", stage="staging", metadata={"acc": "0.9"}, promotionPolicy=POLICY)
    cluster.settle()
    assert cluster.production == "v2"
    assert max(seen) == 1


@pytest.mark.parametrize("stage", ["staging", "archived", "dev"])
def test_a_stage_taken_back_by_hand_leaves_production_empty_until_somebody_asks(cluster, stage):
    cluster.entry("v1", stage="staging", metadata={"acc": "0.9"}, promotionPolicy=POLICY)
    cluster.settle()
    assert cluster.production == "v1"
    cluster.after(10)
    cluster.edit("v1", stage=stage)
    cluster.settle()
    assert cluster.production == ""
    assert cluster.family.terms[0].reason == "Released"
    assert cluster.condition("v1", "InProduction")[:2] == ("False", "Released")
    assert cluster.stage("v1") == stage
    if stage == "staging":
        assert cluster.condition("v1", "PromotionGate")[1] == "TakenBack"
    cluster.edit("v1", stage="production")
    cluster.settle()
    assert cluster.production == "v1"
    assert len(cluster.family.terms) == 2


def test_an_edit_of_what_waits_in_staging_is_looked_at_again(cluster):
    cluster.entry("v1", stage="production", metadata={"acc": "0.9"})
    cluster.entry("v2", stage="staging", metadata={}, promotionPolicy=POLICY)
    cluster.settle()
    assert cluster.status("v2")["promotionDecision"] == "Waiting"
    assert cluster.condition("v2", "PromotionGate")[1] == "MetricMissing"
    cluster.edit("v2", metadata={"acc": "0.8"})
    cluster.settle()
    assert cluster.status("v2")["promotionDecision"] == "Rejected"
    assert (
        cluster.condition("v2", "PromotionGate")[2]
        == "acc 0.8 against 0.9 of v1: better by -0.1, at least 0.002 is needed"
    )
    cluster.edit("v1", metadata={"acc": "0.7"})
    cluster.settle()
    assert cluster.production == "v2"


def test_approval_is_asked_for_and_obeyed(cluster):
    cluster.entry("v1", stage="staging", metadata={"acc": "0.9"}, promotionPolicy={**POLICY, "requireApproval": True})
    cluster.settle()
    assert cluster.condition("v1", "PromotionGate")[1] == "ApprovalNeeded"
    for text, reason in (
        ("yes", "ApprovalUnreadable"),
        ('{"decision": "Approved"}', "ApprovalUnreadable"),
        ('["Approved"]', "ApprovalUnreadable"),
        ('{"decision": "Rejected", "by": "eve", "comment": "too slow"}', "ApprovalRejected"),
    ):
        cluster.annotate("v1", approval=text)
        cluster.settle()
        assert cluster.condition("v1", "PromotionGate")[1] == reason
    assert cluster.condition("v1", "PromotionGate")[2] == "rejected by eve: too slow"
    cluster.annotate("v1", approval=json.dumps({"decision": "Approved", "by": "ada"}))
    cluster.settle()
    assert cluster.production == "v1"
    assert cluster.family.terms[0].approved_by == "ada"


def test_deleting_the_production_entry_empties_production_and_keeps_the_history(cluster):
    cluster.entry("v1", stage="production")
    cluster.entry("v2", aliases=["best"])
    cluster.settle()
    cluster.after(5)
    cluster.delete("gryviamodelregistries", "v1")
    cluster.settle()
    assert cluster.production == ""
    [term] = cluster.family.terms
    assert (term.entry, term.reason, term.end) == ("v1", "Deleted", "2026-01-01T00:00:05Z")
    cluster.entry("v3", stage="production", aliases=["best"])
    cluster.settle()
    assert cluster.production == "v3"
    assert cluster.status("v3")["previousVersion"] == "v1"


def test_a_new_entry_under_the_name_of_a_deleted_one_is_another(cluster):
    cluster.entry("v1", stage="production")
    cluster.settle()
    cluster.delete("gryviamodelregistries", "v1")
    cluster.entry("v1", stage="dev")
    cluster.settle()
    assert cluster.production == ""
    assert cluster.stage("v1") == "dev"


def test_the_example_of_the_last_tuesday(cluster):
    """Three entries, each in production for a week: the record answers for any moment."""
    for name in ("v1", "v2", "v3"):
        cluster.entry(name, stage="production")
        cluster.settle()
        cluster.after(7 * 86400)
    ends = [(term.entry, term.start, term.end) for term in reversed(cluster.family.terms)]
    assert ends == [
        ("v1", "2026-01-01T00:00:00Z", "2026-01-08T00:00:00Z"),
        ("v2", "2026-01-08T00:00:00Z", "2026-01-15T00:00:00Z"),
        ("v3", "2026-01-15T00:00:00Z", None),
    ]


def test_an_unreadable_record_stops_promotion_and_is_never_guessed(cluster):
    cluster.entry("v1", stage="production", metadata={"acc": "0.1"})
    cluster.settle()
    [id] = [id for id in cluster.objects if id[0] == "configmaps"]
    good = cluster.objects[id]["data"]["family.json"]
    for bad in ("{", "[]", good.replace('"name":"m"', '"name":"other"'), good.replace('"production"', '"produktion"')):
        cluster.objects[id] = {**cluster.objects[id], "data": {"family.json": bad}}
        cluster.replicas.clear()
        cluster.replica()
        cluster.entry("v2", stage="staging", metadata={"acc": "0.9"}, promotionPolicy=POLICY)
        cluster.settle()
        assert cluster.condition("v2", "FamilyRecord")[:2] == ("False", "Unreadable")
        assert "gryvia-family-m" in cluster.condition("v2", "FamilyRecord")[2]
        assert [cluster.stage(name) for name in ("v1", "v2")] == ["production", "staging"]
        assert cluster.objects[id]["data"]["family.json"] == bad
        cluster.delete("gryviamodelregistries", "v2")
    cluster.delete(*id)
    cluster.settle()
    assert cluster.production == "v1", "a new history begins with what is in production by its stage"


def test_a_record_that_cannot_be_written_is_told(cluster):
    cluster.refuse = lambda name, body: "too large" if "data" in body else ""
    cluster.entry("v1", stage="production")
    cluster.settle()
    assert cluster.condition("v1", "FamilyRecord") == (
        "False",
        "Invalid",
        "the family's record cannot be written: too large",
    )
    assert "observedGeneration" not in cluster.status("v1")


def test_a_replaced_entry_whose_stage_cannot_be_written_does_not_keep_the_new_one_from_its_place(cluster):
    cluster.entry("v1", stage="production", metadata={"acc": "0"})
    cluster.settle()
    cluster.refuse = lambda name, body: "spec.version: too long" if name == "v1" else ""
    cluster.entry("v2", stage="staging", metadata={"acc": "1"}, promotionPolicy=POLICY)
    cluster.settle()
    assert cluster.production == "v2"
    assert cluster.stage("v2") == "production"
    assert cluster.condition("v2", "FamilyRecord")[1] == "StageNotWritten"


def test_two_entries_made_in_production_at_once_are_in_production_one_after_the_other(cluster):
    cluster.entry("a", stage="production")
    cluster.entry("b", stage="production")
    cluster.settle()
    assert sorted(cluster.stage(name) for name in ("a", "b")) == ["archived", "production"]
    assert cluster.stage(cluster.production) == "production"
    assert sorted(term.entry for term in cluster.family.terms) == ["a", "b"]
    assert sorted(cluster.happened("promoted")) == ["a", "b"]
