"""A bad spec ends Failed with a sentence that names the field, the value and the fix, and asks for nothing until it is mended."""

from __future__ import annotations

import copy

import pytest

GOOD = {"stage": "production", "aliases": ["champion"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": ""}, ("spec.version", '""', "1 to 253")),
        ({"version": " 2"}, ("spec.version", '" 2"', "without spaces")),
        ({"artifacts": {}}, ("spec.artifacts", "s3Path", "pvcName")),
        ({"artifacts": {"s3Path": "bucket/x"}}, ("spec.artifacts.s3Path", "bucket/x", "s3://")),
        ({"artifacts": {"pvcName": "My Claim"}}, ("spec.artifacts.pvcName", "My Claim", "metadata.name")),
        ({"artifacts": {"pvcName": "c", "subPath": "a/../../b"}}, ("spec.artifacts.subPath", "a/../../b", "relative")),
        ({"artifacts": {"pvcName": "c", "subPath": "/a"}}, ("spec.artifacts.subPath", "/a", "relative")),
        ({"artifacts": {"pvcName": "c", "format": "pickle"}}, ("spec.artifacts.format", "pickle", "safetensors")),
        ({"artifacts": {"pvcName": "c", "sizeBytes": -1}}, ("spec.artifacts.sizeBytes", "-1", "0 or more")),
        ({"source": {"jobRef": "No Name"}}, ("spec.source.jobRef", "No Name", "metadata.name")),
        ({"servingConfig": {"replicas": -1}}, ("spec.servingConfig.replicas", "-1", "0 or more")),
        ({"servingConfig": {"gpuCount": -2}}, ("spec.servingConfig.gpuCount", "-2", "0 or more")),
        ({"servingConfig": {"promoteAfterSeconds": -5}}, ("spec.servingConfig.promoteAfterSeconds", "-5", "0 or more")),
        ({"servingConfig": {"canaryWeight": 101}}, ("spec.servingConfig.canaryWeight", "101", "0 to 100")),
        ({"servingConfig": {"gpuType": "a b"}}, ("spec.servingConfig.gpuType", "a b", "letters")),
        ({"servingConfig": {"serviceName": "1Chat"}}, ("spec.servingConfig.serviceName", "1Chat", "lower-case")),
        ({"promotionPolicy": {"metric": ""}}, ("spec.promotionPolicy.metric", '""', "name the key")),
        ({"promotionPolicy": {"metric": "m", "minDelta": "-1"}}, ("spec.promotionPolicy.minDelta", "-1", "0.002")),
        ({"promotionPolicy": {"metric": "m", "minDelta": "1_0"}}, ("spec.promotionPolicy.minDelta", "1_0", "0.002")),
        ({"promotionPolicy": {"metric": "m", "threshold": "nan"}}, ("spec.promotionPolicy.threshold", "nan", "0.9")),
        (
            {"promotionPolicy": {"metric": "m", "stderrMetric": "m"}},
            ("spec.promotionPolicy.stderrMetric", '"m"', "name the one"),
        ),
        ({"rollbackPolicy": {"metric": "", "threshold": "1"}}, ("spec.rollbackPolicy.metric", '""', "name the key")),
        ({"rollbackPolicy": {"metric": "m", "threshold": "low"}}, ("spec.rollbackPolicy.threshold", "low", "0.88")),
        ({"aliases": ["a b"]}, ("spec.aliases", "a b", "letters")),
        ({"aliases": ["x", "x"]}, ("spec.aliases", '"x"', "remove one")),
        ({"aliases": [f"a{n}" for n in range(21)]}, ("spec.aliases", "21", "20 or fewer")),
    ],
)
def test_the_sentence(cluster, change, words):
    cluster.entry("v1", **{**copy.deepcopy(GOOD), **change})
    cluster.settle()
    status = cluster.status("v1")
    assert status["phase"] == "Failed"
    assert all(word in status["message"] for word in words), status["message"]
    assert cluster.condition("v1", "ModelRegistered")[:2] == ("False", "InvalidSpec")
    assert not any(plural == "configmaps" for plural, _ in cluster.objects), "it asked for nothing"
    cluster.change(("gryviamodelregistries", "v1"), {"spec": dict.fromkeys(change)})
    cluster.edit(
        "v1", version="1", artifacts={"s3Path": "s3://m/1", "pvcName": None, "format": None}, aliases=["champion"]
    )
    cluster.settle()
    assert cluster.status("v1")["phase"] == "Registered"
    assert cluster.production == "v1"
    assert cluster.condition("v1", "SpecValid") == ("", "", "")


def test_a_production_entry_with_a_bad_edit_stays_in_production(cluster):
    cluster.entry("v1", stage="production")
    cluster.settle()
    cluster.edit("v1", artifacts={"s3Path": "nowhere"})
    cluster.settle()
    assert cluster.status("v1")["phase"] == "Failed"
    assert cluster.production == "v1"
    assert cluster.condition("v1", "InProduction")[0] == "True"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"servingConfig": {"replicas": 2}}, "spec.servingConfig: spec.autoServe is false"),
        ({"autoServe": True, "servingConfig": {"canaryWeight": 5}}, "spec.servingConfig.canaryWeight: needs"),
        (
            {"stage": "dev", "promotionPolicy": {"metric": "m"}},
            "spec.promotionPolicy: it is looked at in stage staging",
        ),
    ],
)
def test_a_field_without_effect_is_named(cluster, spec, words):
    cluster.entry("v1", **spec)
    cluster.settle()
    assert cluster.condition("v1", "FieldsIgnored")[2].startswith(words)


def test_a_spec_that_does_not_parse_fails_and_goes_on_when_it_is_mended(cluster):
    from gryvia_registry.decide import invalid

    raw = cluster.entry("v1", stage="production", autoServe=True)
    plan = invalid({**raw, "spec": {"modelName": 3}}, "spec.modelName: must be text, got 3", cluster.now)
    assert plan.status is not None
    assert (plan.status.phase, plan.status.message) == ("Failed", "spec.modelName: must be text, got 3")
    assert not plan.patch
