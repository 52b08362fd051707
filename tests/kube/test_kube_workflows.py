"""Workflows on a real API server: its validation, its Job controller, its garbage collector, the rights of the service alone."""

from __future__ import annotations

import json
import os
import signal

from tools.realcluster.node import Fate

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, annotations_of, labels_of, metadata
from gryvia_common.kube.resources import CONFIG_MAPS, PODS, Resource

from .conftest import Fates
from .platform import Services, until

SCRIPT = {"image": "python:3.11-slim", "command": ["python", "-c", "0"]}
JOB = {"type": "training", "gpus": 0, **SCRIPT}
STEPS: list[Json] = [
    {"name": "prepare", "script": SCRIPT, "retries": 1},
    {"name": "train", "dependsOn": ["prepare"], "jobTemplate": {**JOB, "args": ["{{steps.prepare.outputs.rows}}"]}},
    {"name": "each", "dependsOn": ["prepare"], "withItems": ["a", "b"], "script": {**SCRIPT, "args": ["{{item}}"]}},
    {
        "name": "register",
        "dependsOn": ["train", "each"],
        "condition": "double(steps.train.outputs.acc) > 0.9 && steps.each.status == 'Succeeded'",
        "register": {
            "name": "model-{{workflow.name}}",
            "modelName": "m",
            "version": "1",
            "artifacts": {"pvcName": "models"},
            "metadata": {"acc": "{{steps.train.outputs.acc}}", "long": "{{steps.train.outputs.long}}"},
        },
    },
    {"name": "last", "finally": True, "script": SCRIPT},
]


def workflow(namespace: str, name: str = "flow", **spec: object) -> Json:
    meta = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "gryvia.io/v1alpha1",
        "kind": "GryviaWorkflow",
        "metadata": meta,
        "spec": {"steps": STEPS, **spec},
    }


def results(pod: Json, attempt: int) -> Fate:
    """The first try of `prepare` is lost with its node; `train` has long outputs."""
    labels = labels_of(pod)
    if metadata(pod)["name"] == "flow-prepare":
        return Fate(run=0.1, exit_code=137, conditions=(("DisruptionTarget", "True"),))
    said = {"prepare": {"rows": 100}, "train": {"acc": 0.93, "long": "x" * 3000}}.get(labels["gryvia.io/step"], {})
    return Fate(run=0.2, message=json.dumps(said) if said else "")


async def ended(kube: Kube, namespace: str) -> Json:
    return await until(
        lambda: kube.get(WORKFLOW.resource, namespace, "flow"),
        lambda flow: (flow.get("status") or {}).get("phase") in ("Succeeded", "Failed"),
    )


async def all_gone(kube: Kube, namespace: str, resources: tuple[Resource, ...]) -> None:
    for resource in resources:
        await until(
            lambda resource=resource: kube.list(resource, namespace, labels="app.kubernetes.io/managed-by=gryvia"),
            lambda found: not found,
        )


async def test_a_workflow_from_manifest_to_registry_and_its_deletion(
    kube: Kube, services: Services, namespace: str, fates: Fates
) -> None:
    fates.choose = results
    await kube.create(WORKFLOW.resource, workflow(namespace))
    flow = await ended(kube, namespace)
    assert flow["status"]["phase"] == "Succeeded", json.dumps(flow["status"], indent=1)
    steps = {step["name"]: step for step in flow["status"]["stepStatuses"]}
    assert (steps["prepare"]["timesLost"], steps["prepare"]["jobName"]) == (1, "flow-prepare-r1")
    assert "retriesAttempted" not in steps["prepare"]
    assert (await kube.get(CONFIG_MAPS, namespace, steps["train"]["outputsIn"]))["data"]["long"] == "x" * 3000
    assert (await kube.get(AI_JOB.resource, namespace, "flow-train"))["spec"]["args"] == ["100"]
    entry = await kube.get(MODEL_REGISTRY.resource, namespace, "model-flow")
    assert entry["spec"]["metadata"] == {"acc": "0.93", "long": "x" * 3000}
    await kube.delete(WORKFLOW.resource, namespace, "flow")
    await all_gone(kube, namespace, (AI_JOB.resource, PODS))
    assert await kube.get(MODEL_REGISTRY.resource, namespace, "model-flow")


async def test_killing_the_service_while_pods_run_repeats_and_loses_nothing(
    kube: Kube, service_processes: Services, namespace: str, fates: Fates
) -> None:
    runs: list[str] = []
    killed: list[int] = []

    def counted(pod: Json, attempt: int) -> Fate:
        runs.append(metadata(pod)["name"])
        pid = service_processes.children["workflow"].pid
        if pid is not None and metadata(pod)["name"] in ("flow-prepare", "flow-each-i1", "flow-last"):
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)
        return results(pod, attempt)

    fates.choose = counted
    await kube.create(WORKFLOW.resource, workflow(namespace))
    flow = await ended(kube, namespace)
    assert flow["status"]["phase"] == "Succeeded", json.dumps(flow["status"], indent=1)
    scripts = [name for name in runs if "train" not in name]
    assert sorted(scripts) == sorted({"flow-prepare", "flow-prepare-r1", "flow-each-i0", "flow-each-i1", "flow-last"})
    assert len([name for name in runs if "train" in name]) == 1
    assert killed


async def test_a_run_is_cancelled_and_another_asked_for(
    kube: Kube, services: Services, namespace: str, fates: Fates
) -> None:
    """What runs is gone; the finally step runs; then the next run, and the first is kept."""

    def choose(pod: Json, attempt: int) -> Fate:
        slow = labels_of(pod).get("gryvia.io/run") == "0" and labels_of(pod).get("gryvia.io/step") in ("train", "each")
        return Fate(run=600) if slow else results(pod, attempt)

    async def annotate(key: str, value: str) -> None:
        body = {"metadata": {"annotations": {f"gryvia.io/{key}": value}}}
        await kube.patch(WORKFLOW.resource, namespace, "flow", body)

    fates.choose = choose
    spec = workflow(namespace)
    del spec["spec"]["steps"][3]["register"]["name"]
    await kube.create(WORKFLOW.resource, spec)
    await until(
        lambda: kube.list(PODS, namespace),
        lambda pods: sum((pod.get("status") or {}).get("phase") == "Running" for pod in pods) == 3,
    )
    await annotate("cancel", json.dumps({"by": "ann"}))
    flow = await ended(kube, namespace)
    phases = {step["name"]: step["phase"] for step in flow["status"]["stepStatuses"]}
    assert phases == {
        "prepare": "Succeeded",
        "train": "Failed",
        "each": "Failed",
        "register": "Skipped",
        "last": "Succeeded",
    }
    assert (flow["status"]["phase"], flow["status"]["message"]) == ("Failed", "cancelled by ann")
    await until(
        # Those of the job go with it, when Kubernetes' garbage collector has heard of its kind.
        lambda: kube.list(PODS, namespace, labels="gryvia.io/component=workflow-step,!gryvia.io/job"),
        lambda pods: all((pod.get("status") or {}).get("phase") in ("Succeeded", "Failed") for pod in pods),
    )
    assert await kube.list(AI_JOB.resource, namespace) == []
    assert "gryvia.io/cancel" not in annotations_of(await kube.get(WORKFLOW.resource, namespace, "flow"))
    await annotate("run-requested", "1")
    flow = await until(
        lambda: kube.get(WORKFLOW.resource, namespace, "flow"),
        lambda flow: flow["status"].get("run") == 1 and flow["status"]["phase"] in ("Succeeded", "Failed"),
    )
    assert flow["status"]["phase"] == "Succeeded", json.dumps(flow["status"], indent=1)
    assert (await kube.get(MODEL_REGISTRY.resource, namespace, "flow-register-n1"))["spec"]["modelName"] == "m"
    kept = json.loads((await kube.get(CONFIG_MAPS, namespace, "flow-run-n0"))["data"]["run.json"])
    assert kept["cancelled"]["by"] == "ann"
