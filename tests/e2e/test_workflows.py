"""Workflows on the embedded platform, with real pods: the training pipeline of the examples, from its manifest to the entry in the
registry with the measured score; an approval, a lost run's rest, a failed step that is tried again."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import PVCS

EXAMPLES = Path(__file__).parents[2] / "examples" / "ml-workflow"
RESOURCES = {"GryviaWorkflow": WORKFLOW.resource, "PersistentVolumeClaim": PVCS}


async def apply(running, manifests: list[Json]) -> None:
    for manifest in manifests:
        meta = {"namespace": "default", **manifest["metadata"]}
        await running.kube.create(RESOURCES[manifest["kind"]], {**manifest, "metadata": meta}, manager="test")


async def ended(running, name: str, *, seconds: float = 110) -> Json:
    return await running.until(
        lambda: running.kube.get(WORKFLOW.resource, "default", name),
        lambda found: (found.get("status") or {}).get("phase") in ("Succeeded", "Failed"),
        seconds=seconds,
    )


def phases(workflow: Json) -> dict[str, str]:
    return {step["name"]: step["phase"] for step in workflow["status"]["stepStatuses"]}


async def test_the_training_pipeline_registers_the_measured_model(running) -> None:
    manifests = list(yaml.safe_load_all((EXAMPLES / "training-pipeline.yaml").read_text()))
    await apply(running, manifests)
    workflow = await ended(running, "digits-pipeline")
    assert workflow["status"]["phase"] == "Succeeded", json.dumps(workflow["status"], indent=1)
    assert set(phases(workflow).values()) == {"Succeeded"}
    outputs = {step["name"]: step.get("outputs", {}) for step in workflow["status"]["stepStatuses"]}
    assert outputs["preprocess"] == {"samples": "1797", "scale": "16.0"}
    assert 0.9 < float(outputs["evaluate"]["val_accuracy"]) <= 1
    entry = await running.kube.get(MODEL_REGISTRY.resource, "default", "digits-v1")
    assert entry["spec"]["metadata"]["val_accuracy"] == outputs["evaluate"]["val_accuracy"]
    assert entry["spec"]["source"] == {"workflowRef": "digits-pipeline"}
    assert "ownerReferences" not in entry["metadata"]
    times = {step["name"]: (step["startTime"], step["completionTime"]) for step in workflow["status"]["stepStatuses"]}
    assert times["evaluate"][0] == times["benchmark"][0]
    assert times["report"][0] >= times["register"][1]
