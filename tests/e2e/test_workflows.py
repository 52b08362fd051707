"""Workflows on the embedded platform, with real pods: the training pipeline of the examples, from its manifest to the entry in the
registry with the measured score; and a loop, a retry, an approval, a failed run that is resumed."""

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


FLAKY = """
import os, pathlib, sys, gryvia
place = pathlib.Path("{place}")
tries = len(list(place.iterdir()))
(place / str(tries)).touch()
gryvia.outputs(tries=tries + 1, names=["a", "b"], long="x" * 1500)
sys.exit(0 if tries >= {needed} else "not yet")
"""


async def test_a_loop_a_retry_an_approval_and_a_resumed_run(running, tmp_path: Path) -> None:
    place = tmp_path / "tries"
    place.mkdir()
    place.chmod(0o777)

    def script(code: str) -> Json:
        return {"image": "python:3.11-slim", "command": ["python", "-c", code]}

    steps = [
        # Two attempts fail, so the first run fails; the third, of the resumed run, succeeds.
        {"name": "flaky", "retries": 1, "script": script(FLAKY.format(place=place, needed=2))},
        {
            "name": "each",
            "dependsOn": ["flaky"],
            "withItems": "{{steps.flaky.outputs.names}}",
            "script": script(
                "import gryvia; gryvia.outputs(name='{{item}}', size=len('{{steps.flaky.outputs.long}}'))"
            ),
        },
        {"name": "ask", "type": "approval", "approvers": ["ann"], "dependsOn": ["each"]},
        {
            "name": "check",
            "dependsOn": ["ask"],
            "script": script("import sys; sys.exit({{steps.each.outputs.name}} != ['a', 'b'])"),
        },
    ]
    meta = {"name": "flow"}
    await apply(
        running,
        [{"apiVersion": "gryvia.io/v1alpha1", "kind": "GryviaWorkflow", "metadata": meta, "spec": {"steps": steps}}],
    )
    failed = await ended(running, "flow")
    assert phases(failed) == {"flaky": "Failed", "each": "Skipped", "ask": "Skipped", "check": "Skipped"}
    assert failed["status"]["message"] == "step flaky: pod flow-flaky-r1 ended with exit code 1"
    await annotate(running, {"gryvia.io/retry-failed": "1"})
    await running.until(
        lambda: running.kube.get(WORKFLOW.resource, "default", "flow"), lambda flow: phases(flow)["ask"] == "Running"
    )
    await annotate(running, {"gryvia.io/approval-ask": json.dumps({"decision": "Approved", "by": "ann"})})
    done = await ended(running, "flow")
    assert done["status"]["phase"] == "Succeeded", json.dumps(done["status"], indent=1)
    steps_ = {step["name"]: step for step in done["status"]["stepStatuses"]}
    assert steps_["each"]["outputs"] == {"name": '["a", "b"]', "size": '["1500", "1500"]'}
    assert steps_["ask"]["approval"]["by"] == "ann"
    assert len(list(place.iterdir())) == 3


async def annotate(running, annotations: dict[str, str]) -> None:
    await running.kube.patch(WORKFLOW.resource, "default", "flow", {"metadata": {"annotations": annotations}})
