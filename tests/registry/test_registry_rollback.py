"""Back in time: by policy and on request, and what is refused."""

from __future__ import annotations

import pytest

ENTRIES = "gryviamodelregistries"


def production_of(cluster, *names, **spec):
    for name in names:
        cluster.entry(name, stage="production", **spec)
        cluster.settle()
        cluster.after(60)


def test_a_breach_gives_the_place_back_to_what_was_there_before_by_time(cluster):
    """By name c would come first: names play no part."""
    production_of(cluster, "z", "c", "a", rollbackPolicy={"metric": "live", "threshold": "0.88"})
    cluster.edit("a", metadata={"live": "0.9"})
    cluster.settle()
    assert cluster.production == "a"
    cluster.edit("a", metadata={"live": "0.879"})
    cluster.settle()
    assert cluster.production == "c"
    assert [cluster.stage(name) for name in ("z", "c", "a")] == ["archived", "production", "archived"]
    assert cluster.status("a")["phase"] == "RolledBack"
    status, reason, _ = cluster.condition("a", "RolledBack")
    assert (status, reason) == ("True", "PolicyBreached")
    assert cluster.family.terms[0].cause == "RolledBack"
    assert "live 0.879 is below 0.88" in cluster.family.terms[0].note
    assert cluster.happened("rolledback") == ["a"]
    assert [record.reason for name, record in cluster.records if name == "a"][-1] == "RolledBack"
    assert cluster.status("c")["previousVersion"] == "z", "what was rolled back is not what one goes back to"


def test_a_request_rolls_back_and_is_taken_off(cluster):
    production_of(cluster, "v1", "v2")
    cluster.annotate("v2", rollback_requested="cli at noon")
    cluster.settle()
    assert cluster.production == "v1"
    assert cluster.condition("v2", "RolledBack")[:2] == ("True", "Requested")
    assert "gryvia.io/rollback-requested" not in cluster.get("v2")["metadata"].get("annotations", {})


@pytest.mark.parametrize("text", ["nan", "inf", "0,5", "", "1_000", "0.50 "])
def test_what_is_no_number_is_no_breach(cluster, text):
    production_of(cluster, "v1", "v2", rollbackPolicy={"metric": "live", "threshold": "0.9"})
    cluster.edit("v2", metadata={"live": text})
    cluster.settle()
    assert cluster.production == "v2"


@pytest.mark.parametrize(("value", "production"), [("0.2", "v2"), ("0.20001", "v1")])
def test_for_a_metric_to_minimize_above_the_threshold_is_a_breach(cluster, value, production):
    production_of(cluster, "v1", "v2", rollbackPolicy={"metric": "errors", "threshold": "0.2", "direction": "minimize"})
    cluster.edit("v2", metadata={"errors": value})
    cluster.settle()
    assert cluster.production == production


def test_refusals_are_told_once_and_change_nothing(cluster):
    production_of(cluster, "v1")
    cluster.entry("v2", stage="staging")
    for name in ("v1", "v2"):
        cluster.annotate(name, rollback_requested="me")
    cluster.settle()
    assert cluster.condition("v1", "RolledBack")[:2] == ("False", "NoPreviousVersion")
    assert cluster.condition("v2", "RolledBack")[:2] == ("False", "NotServing")
    assert cluster.production == "v1"
    refused = [(name, record.message) for name, record in cluster.records if record.reason == "RollbackRefused"]
    assert sorted(refused) == [
        ("v1", "NoPreviousVersion: Requested: nothing was in production before"),
        ("v2", "NotServing: Requested: v2 is not the production entry of m"),
    ]
    for name in ("v1", "v2"):
        assert "gryvia.io/rollback-requested" not in cluster.get(name)["metadata"].get("annotations", {})


def test_a_rollback_while_a_service_is_between_two_versions_is_refused(cluster):
    production_of(cluster, "v1", "v2")
    cluster.service("shared", "v2", canary={"enabled": True, "weight": 10, "modelVersion": "v3"})
    cluster.annotate("v2", rollback_requested="me")
    cluster.settle()
    assert cluster.condition("v2", "RolledBack")[:2] == ("False", "NotStable")
    assert cluster.production == "v2"


def test_a_breach_waits_for_a_service_that_is_between_two_versions(cluster):
    production_of(cluster, "v1", "v2", rollbackPolicy={"metric": "live", "threshold": "0.9"})
    cluster.service("shared", "v2", canary={"enabled": True, "weight": 10, "modelVersion": "v3"})
    cluster.edit("v2", metadata={"live": "0.1"})
    cluster.settle()
    assert cluster.production == "v2"
    cluster.service("shared", "v2", canary=None)
    cluster.settle()
    assert cluster.production == "v1"


def test_what_was_deleted_is_passed_over(cluster):
    production_of(cluster, "v1", "v2", "v3")
    cluster.delete(ENTRIES, "v2")
    cluster.settle()
    cluster.annotate("v3", rollback_requested="me")
    cluster.settle()
    assert cluster.production == "v1"


def test_one_rollback_after_another_goes_further_back_and_never_to_and_fro(cluster):
    production_of(cluster, "v1", "v2", "v3")
    for name, expected in (("v3", "v2"), ("v2", "v1"), ("v1", "v1")):
        cluster.annotate(name, rollback_requested="me")
        cluster.settle()
        assert cluster.production == expected
        cluster.after(10)
    assert cluster.condition("v1", "RolledBack")[:2] == ("False", "NoPreviousVersion")


def test_what_was_rolled_back_may_be_promoted_again_by_hand(cluster):
    production_of(cluster, "v1", "v2")
    cluster.annotate("v2", rollback_requested="me")
    cluster.settle()
    cluster.edit("v2", stage="production")
    cluster.settle()
    assert cluster.production == "v2"
    assert cluster.status("v2")["phase"] == "Registered"
