"""What serves an entry: it is mirrored, and the entry is kept as long as somebody needs it."""

from __future__ import annotations

import pytest

ENTRIES, SERVICES = "gryviamodelregistries", "gryviainferenceservices"
GUARD = "gryvia.io/serving-guard"


def guards(cluster, name):
    return cluster.get(name)["metadata"].get("finalizers") or []


def test_the_production_entry_that_a_service_uses_cannot_be_deleted_and_history_answers_for_last_tuesday(cluster):
    """Deletion waits until the service serves another entry, and says for whom; no modelRef ever leads nowhere."""
    cluster.entry("v1", stage="production")
    cluster.service("chat", "v1", {"phase": "Ready", "endpoint": "http://chat"})
    cluster.settle()
    assert guards(cluster, "v1") == [GUARD]
    cluster.after(7 * 86400)
    cluster.delete(ENTRIES, "v1")
    cluster.settle()
    status, reason, message = cluster.condition("v1", "DeletionHeld")
    assert (status, reason) == ("True", "Served")
    assert message.startswith("served by GryviaInferenceService chat;")
    assert cluster.production == "v1", "what is served is still what is in production"
    cluster.entry("v2", stage="production")
    cluster.settle()
    assert (ENTRIES, "v1") in cluster.objects
    assert cluster.stage("v1") == "archived"
    cluster.service("chat", "v2", {"phase": "Ready"})
    cluster.settle()
    assert (ENTRIES, "v1") not in cluster.objects
    assert guards(cluster, "v2") == [GUARD]
    [now, then] = cluster.family.terms
    assert (then.entry, then.version, then.start, then.end) == (
        "v1",
        "v1",
        "2026-01-01T00:00:00Z",
        "2026-01-08T00:00:00Z",
    )
    assert (now.entry, now.start, now.end) == ("v2", "2026-01-08T00:00:00Z", None)


def test_the_deletion_of_the_service_lets_the_entry_go_and_empties_production(cluster):
    cluster.entry("v1", stage="production", aliases=["champion"])
    cluster.service("chat", "v1")
    cluster.settle()
    cluster.delete(ENTRIES, "v1")
    cluster.settle()
    cluster.delete(SERVICES, "chat")
    cluster.settle()
    assert (ENTRIES, "v1") not in cluster.objects
    assert cluster.production == ""
    assert cluster.family.aliases == {}
    assert cluster.family.terms[0].reason == "Deleted"
    assert cluster.happened("archived") == ["v1"]


def test_a_canary_needs_its_entry_too(cluster):
    cluster.entry("v1")
    cluster.entry("v2")
    cluster.service("chat", "v1", canary={"enabled": True, "weight": 10, "modelVersion": "v2"})
    cluster.settle()
    assert guards(cluster, "v2") == [GUARD]
    assert cluster.status("v2")["phase"] == "Canary"
    cluster.service("chat", "v1", canary={"enabled": False})
    cluster.settle()
    assert guards(cluster, "v2") == []
    assert cluster.status("v2")["phase"] == "Registered"


def test_an_entry_that_nobody_serves_has_no_finalizer_and_goes_at_once(cluster):
    cluster.entry("v1", stage="production")
    cluster.settle()
    assert guards(cluster, "v1") == []
    cluster.delete(ENTRIES, "v1")
    assert (ENTRIES, "v1") not in cluster.objects


def test_with_auto_serve_production_is_guarded_and_let_go_when_nothing_serves(cluster):
    cluster.entry("v1", stage="production", autoServe=True)
    cluster.settle()
    assert guards(cluster, "v1") == [GUARD]
    cluster.delete(ENTRIES, "v1")
    cluster.settle()
    assert (ENTRIES, "v1") not in cluster.objects
    assert cluster.production == ""


def test_a_service_of_the_entrys_own_does_not_hold_it(cluster):
    """It goes when the entry goes: holding the entry for it would hold both for ever."""
    entry = cluster.entry("v1", stage="production", autoServe=True)
    cluster.service("v1-serving", "v1")
    owner = {"apiVersion": "gryvia.io/v1alpha1", "kind": "GryviaModelRegistry", "name": "v1", "controller": True}
    meta = {"ownerReferences": [{**owner, "uid": entry["metadata"]["uid"]}]}
    cluster.change((SERVICES, "v1-serving"), {"metadata": meta})
    cluster.settle()
    cluster.delete(ENTRIES, "v1")
    cluster.settle()
    assert (ENTRIES, "v1") not in cluster.objects


def test_auto_serve_without_a_service_says_that_nobody_answered_and_what_to_do(cluster):
    cluster.entry("v1", stage="production", autoServe=True)
    cluster.settle()
    status, reason, message = cluster.condition("v1", "ModelServing")
    assert (status, reason) == ("False", "ServingUnavailable")
    assert "not part of this installation" in message
    assert "modelRef: v1" in message
    assert cluster.status("v1")["phase"] == "Registered"
    [event] = [event for event in cluster.events if event.type == "gryvia.model.promoted"]
    assert event.auto_serve is True


@pytest.mark.parametrize(
    ("said", "phase", "health", "condition"),
    [
        ({"phase": "Ready", "endpoint": "http://x"}, "Serving", "Healthy", ("True", "Serving")),
        ({"phase": "Failed", "message": "no GPU"}, "Failed", "Unhealthy", ("False", "Failed")),
        ({"phase": "Deploying"}, "Deploying", "Unknown", ("False", "Deploying")),
        ({"phase": "ScaledToZero"}, "Deploying", "Unknown", ("False", "Deploying")),
        ({}, "Deploying", "Unknown", ("False", "Deploying")),
    ],
)
def test_the_service_is_mirrored(cluster, said, phase, health, condition):
    cluster.entry("v1", stage="production", autoServe=True)
    cluster.service("v1-serving", "v1", said)
    cluster.settle()
    status = cluster.status("v1")
    assert (status["phase"], status["health"], status["inferenceServiceName"]) == (phase, health, "v1-serving")
    assert cluster.condition("v1", "ModelServing")[:2] == condition
    assert status.get("servingEndpoint") == said.get("endpoint")
    assert status.get("message") == said.get("message")
    assert ("deployedAt" in status) == (phase == "Serving")


def test_what_serves_no_longer_is_cleared(cluster):
    cluster.entry("v1", stage="production")
    cluster.service("chat", "v1", {"phase": "Ready", "endpoint": "http://x"})
    cluster.settle()
    assert cluster.status("v1")["deployedAt"]
    cluster.delete(SERVICES, "chat")
    cluster.settle()
    status = cluster.status("v1")
    assert status["phase"] == "Registered"
    assert not {"servingEndpoint", "health", "deployedAt", "inferenceServiceName"} & status.keys()
