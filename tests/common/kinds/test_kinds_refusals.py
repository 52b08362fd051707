"""What an API server refuses, with which words, and what it must let through because the service answers for it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gryvia_common.kinds.catalogue import BY_NAME
from gryvia_common.kinds.workflow import WORKFLOW

Spec = dict[str, Any]

JOB: Spec = {"type": "training", "gpus": 0, "image": "python:3.11"}
TUNER: Spec = {
    "searchAlgorithm": "grid",
    "parameterSpace": [{"name": "lr", "type": "float", "min": 0.1, "max": 1}],
    "objective": {"metricName": "loss", "direction": "minimize"},
    "maxTrials": 3,
    "jobTemplate": JOB,
}
INDEX: Spec = {"datasetRef": "d", "embedding": {"model": "m"}, "store": {"type": "managed"}}
REGISTER: Spec = {"modelName": "m", "version": "1", "artifacts": {"s3Path": "s3://m"}}
GUARD: Spec = {"jobSelector": {}, "checkpointPolicy": {"emergencyCheckpoint": {"triggers": ["Boredom"]}}}


def changed(spec: Spec, **changes: Any) -> Spec:
    return {**copy.deepcopy(spec), **changes}


def elastic(nodes: int, least: int) -> Spec:
    return changed(JOB, distributed={"enabled": True, "nodes": nodes, "elastic": {"minNodes": least}})


REFUSED = [
    ("GryviaAIJob", changed(JOB, gpus=-1), "spec.gpus"),
    ("GryviaAIJob", changed(JOB, priority=101), "spec.priority"),
    ("GryviaAIJob", changed(JOB, type="trainin"), "spec.type"),
    ("GryviaAIJob", changed(JOB, workloadKind="deployment"), "spec.workloadKind"),
    ("GryviaAIJob", {"type": "training", "gpus": 0}, "spec.image"),
    ("GryviaAIJob", changed(JOB, image=7), "spec.image"),
    ("GryviaAIJob", changed(JOB, env=[{"value": "1"}]), "spec.env[0].name"),
    ("GryviaAIJob", changed(JOB, resources={"limits": {"cpu": "many"}}), "spec.resources.limits"),
    ("GryviaAIJob", elastic(2, 3), "elastic.minNodes must not be above nodes"),
    ("GryviaAIJob", elastic(2, 0), "spec.distributed.elastic.minNodes"),
    ("GryviaAutoTuner", changed(TUNER, searchAlgorithm="bayes"), "spec.searchAlgorithm"),
    ("GryviaAutoTuner", changed(TUNER, warmStartFrom=["a", "a"]), "spec.warmStartFrom"),
    ("GryviaAutoTuner", changed(TUNER, jobTemplate=changed(JOB, gpus=-2)), "spec.jobTemplate.gpus"),
    ("GryviaVectorIndex", changed(INDEX, chunking={"size": 100, "overlap": 100}), "overlap must be less than"),
    ("GryviaVectorIndex", changed(INDEX, chunking={"overlap": 1000}), "overlap must be less than"),
    ("GryviaVectorIndex", changed(INDEX, chunking={"size": 49}), "spec.chunking.size"),
    ("GryviaVectorIndex", changed(INDEX, collection="-x"), "spec.collection"),
    ("GryviaModelRegistry", changed(REGISTER, artifacts={"format": "onnx"}), "artifacts needs s3Path or pvcName"),
    ("GryviaWorkflow", {"steps": [{"name": "a", "register": changed(REGISTER, artifacts={})}]}, "s3Path or pvcName"),
    ("GryviaWorkflow", {"steps": [{"name": "a", "registry": {"action": "rollback"}}]}, "either entry or serviceName"),
    ("GryviaWorkflow", {"steps": [{"name": "a", "jobTemplate": elastic(2, 3)}]}, "minNodes must not be above"),
    ("GryviaCheckpointGuard", GUARD, "triggers[0]"),
    ("GryviaQuota", {"team": "a", "namespaces": [], "gpuQuota": {"maxGPUs": 1}, "tokensPerDay": 0}, "tokensPerDay"),
]


@pytest.mark.parametrize(("kind", "spec", "words"), REFUSED)
def test_a_wrong_field_is_refused_by_its_name(api_server: Any, kind: str, spec: Spec, words: str) -> None:
    refusals = api_server.refusals(BY_NAME[kind], spec)
    assert [text for text in refusals if words in text], refusals


LEFT_TO_THE_SERVICE = [
    ("GryviaAutoTuner", changed(TUNER, maxTrials=0)),
    ("GryviaAutoTuner", changed(TUNER, maxTrials=10**6)),
    ("GryviaAutoTuner", changed(TUNER, parameterSpace=[])),
    ("GryviaAutoTuner", changed(TUNER, parameterSpace=[{"name": "", "type": "int"}])),
    ("GryviaAutoTuner", changed(TUNER, parameterSpace=[{"name": "x", "type": "float", "min": 2, "max": 1}])),
    ("GryviaAutoTuner", changed(TUNER, objective={"metricName": "", "direction": "upwards"})),
    ("GryviaAutoTuner", changed(TUNER, jobTemplate={"type": "training", "gpus": 0})),
    ("GryviaAutoTuner", changed(TUNER, jobTemplate={})),
    ("GryviaAutoTuner", changed(TUNER, searchAlgorithm="asha")),
    ("GryviaWorkflow", {"steps": []}),
    ("GryviaWorkflow", {"steps": [{"name": f"s{number}"} for number in range(101)]}),
    ("GryviaWorkflow", {"steps": [{"name": "a", "dependsOn": ["a"]}, {"name": "a"}]}),
    ("GryviaWorkflow", {"steps": [{"name": "Not A Label", "jobTemplate": {}, "retries": 11}]}),
    ("GryviaInferenceService", {"modelRef": "m", "backend": "homemade"}),
    ("GryviaWorkspace", {"type": "jupyter", "storage": "lots", "cpuLimit": 2}),
    ("GryviaVectorIndex", changed(INDEX, store={"type": "managed", "external": {"url": "http://q:6333"}})),
    ("GryviaAgent", {"model": "m", "tools": [{"name": "a", "type": "http"}, {"name": "a", "type": "retrieval"}]}),
    ("GryviaDataset", {"source": {"type": "vast"}}),
    ("GryviaAIJob", changed(JOB, gpuType="H200", storageRequest="many", timeout="soon")),
]


@pytest.mark.parametrize(("kind", "spec"), LEFT_TO_THE_SERVICE)
def test_what_the_contract_answers_with_phase_failed_is_not_refused(api_server: Any, kind: str, spec: Spec) -> None:
    assert api_server.refusals(BY_NAME[kind], copy.deepcopy(spec)) == []
    BY_NAME[kind].spec.model_validate(spec)


@pytest.mark.parametrize(
    ("spec", "typo"),
    [
        (changed(JOB, volumeMounts=[{"name": "d", "mountPath": "/d", "mountPth": "/d"}]), "volumeMounts[0].mountPth"),
        (changed(JOB, env=[{"name": "A", "valueForm": {}}]), "env[0].valueForm"),
        (changed(JOB, resources={"limit": {}}), "resources.limit"),
        (changed(JOB, tolerations=[{"efect": "NoSchedule"}]), "tolerations[0].efect"),
        (changed(JOB, volumes=[{"name": "d", "emptydir": {}}]), "volumes[0].emptydir"),
        (changed(JOB, distributed={"node": 2}), "distributed.node"),
    ],
)
def test_a_mistyped_field_is_named(api_server: Any, spec: Spec, typo: str) -> None:
    """In the job's own spec as in the templates of other kinds: kubectl shows exactly these paths."""
    places: list[tuple[str, str, Spec]] = [
        ("GryviaAIJob", "spec", copy.deepcopy(spec)),
        ("GryviaAutoTuner", "spec.jobTemplate", changed(TUNER, jobTemplate=copy.deepcopy(spec))),
        ("GryviaWorkflow", "spec.steps[0].jobTemplate", {"steps": [{"name": "a", "jobTemplate": copy.deepcopy(spec)}]}),
    ]
    for kind, place, whole in places:
        manifest = {"apiVersion": "gryvia.io/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": whole}
        assert api_server.create(manifest) == ([f"{place}.{typo}"], [])


@pytest.mark.parametrize(
    "items", [[1, "two", {"three": 3}], [], "{{parameters.list}}"], ids=["values", "empty", "placeholder"]
)
def test_with_items_takes_a_list_of_anything_or_a_placeholder_and_keeps_it(api_server: Any, items: object) -> None:
    spec = {"steps": [{"name": "a", "withItems": items, "script": {"image": "i", "command": ["c"]}}]}
    assert api_server.refusals(WORKFLOW, spec) == []
    step = WORKFLOW.spec.model_validate(spec).wire()["steps"][0]
    assert step["withItems"] == items


def test_an_affinity_and_a_rare_volume_reach_the_pod_unchanged(api_server: Any) -> None:
    affinity: Spec = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    volume = {"name": "v", "csi": {"driver": "x", "volumeAttributes": {"a": "b"}}}
    spec = changed(JOB, affinity=affinity, volumes=[volume], resources={"limits": {"nvidia.com/gpu": 1}})
    assert api_server.refusals(BY_NAME["GryviaAIJob"], spec) == []
    wire = BY_NAME["GryviaAIJob"].spec.model_validate(spec).wire()
    assert (wire["affinity"], wire["volumes"], wire["resources"]) == (affinity, [volume], spec["resources"])


def test_an_agents_defaults_are_stored_and_a_tuners_are_not(api_server: Any) -> None:
    agent: Spec = {
        "apiVersion": "gryvia.io/v1alpha1",
        "kind": "GryviaAgent",
        "metadata": {"name": "x"},
        "spec": {"model": "m", "tools": [{"name": "t", "type": "http", "http": {"urls": ["http://a"]}}]},
    }
    assert api_server.create(agent) == ([], [])
    assert (agent["spec"]["maxSteps"], agent["spec"]["replicas"]) == (5, 1)
    assert agent["spec"]["tools"][0]["http"]["method"] == "GET"
    tuner = {**agent, "kind": "GryviaAutoTuner", "spec": copy.deepcopy(TUNER)}
    assert api_server.create(tuner) == ([], [])
    assert tuner["spec"] == TUNER
