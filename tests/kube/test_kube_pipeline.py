"""The training pipeline of the examples on a real API server, and that everything it makes is what it makes on devcluster."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from tools.realcluster.node import Fate, named_fates
from tools.realcluster.recording import differences

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import CONFIG_MAPS, EVENTS, JOBS, PODS, PVCS, Resource

from .both import platform_on_devcluster
from .conftest import Fates
from .platform import Services, until

PIPELINE = Path(__file__).parents[2] / "examples" / "ml-workflow" / "training-pipeline.yaml"
NAME = "digits-pipeline"
RESOURCES = {"GryviaWorkflow": WORKFLOW.resource, "PersistentVolumeClaim": PVCS}
CHILDREN = (AI_JOB.resource, JOBS, PODS, CONFIG_MAPS, MODEL_REGISTRY.resource)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# The last part of the name of a Job's pod.
_MADE_UP = re.compile(rf"\b({NAME}-[a-z0-9-]+-\d+)-[a-z0-9]{{5}}\b")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def says(**values: Any) -> Fate:
    """A container that hands on outputs as gryvia.outputs does."""
    return Fate(run=0.2, message=json.dumps(values))


def steps(**others: Fate) -> dict[str, Fate]:
    log = "".join(f"gryvia-report {json.dumps({'step': step, 'loss': 1 / step})}\n" for step in range(1, 13))
    told = json.dumps({"model": "/models/1/model.pkl", "loss": 0.01, "bytes": 4711})
    return {
        "*-preprocess*": says(samples=1797, scale=16.0),
        "*-train*": Fate(run=0.2, message=told, log=log),
        "*-evaluate*": says(val_accuracy=0.9711, stderr=0.0079),
        "*-benchmark*": says(p50_ms=0.1, p95_ms=0.2),
        **{f"*-{name}*": fate for name, fate in others.items()},
        "*": Fate(run=0.1),
    }


async def run(kube: Kube, namespace: str) -> Json:
    """The workflow at its end."""
    for manifest in yaml.safe_load_all(PIPELINE.read_text()):
        meta = {**manifest["metadata"], "namespace": namespace}
        await kube.create(RESOURCES[manifest["kind"]], {**manifest, "metadata": meta}, manager="test")
    found: Json = await until(
        lambda: kube.get(WORKFLOW.resource, namespace, NAME),
        lambda workflow: (workflow.get("status") or {}).get("phase") in ("Succeeded", "Failed"),
        seconds=90,
    )
    return found


async def outcome(kube: Kube, namespace: str) -> list[Json]:
    """All that a user sees of the pipeline when it has ended, a thing a turn, without what is another in each run."""
    workflow = await run(kube, namespace)
    children = [
        child_of(resource, child)
        for resource in CHILDREN
        for child in await kube.list(resource, namespace)
        if metadata(child)["name"] != "kube-root-ca.crt"
    ]
    events = {
        (event["involvedObject"]["kind"], event["reason"], event["message"])
        for event in await kube.list(EVENTS, namespace)
        if (event.get("source") or {}).get("component", "").startswith("gryvia")
    }
    turns = [
        {"request": "status", "body": workflow["status"]},
        *({"request": f"{child['kind']} {child['name']}", "body": child} for child in sorted(children, key=_place)),
        {"request": "events", "body": sorted(events)},
    ]
    text = _MADE_UP.sub(r"\1-*", _UID.sub("UID", _TIME.sub("TIME", json.dumps(turns))))
    normalised: list[Json] = json.loads(text)
    return normalised


def _place(child: Json) -> tuple[str, str]:
    return child["kind"], child["name"]


def phases_in(turns: list[Json]) -> dict[str, str]:
    return {step["name"]: step["phase"] for step in turns[0]["body"]["stepStatuses"]}


def child_of(resource: Resource, child: Json) -> Json:
    meta = metadata(child)
    owners = [{key: value for key, value in owner.items() if key != "uid"} for owner in meta.get("ownerReferences", ())]
    status = child.get("status") or {}
    return {
        "kind": resource.kind,
        "name": meta["name"],
        "labels": meta.get("labels", {}),
        "owners": owners,
        "data": child.get("data", {}),
        "spec": child["spec"] if resource.group == "gryvia.io" else {},
        "phase": status.get("phase", ""),
        "metrics": status.get("metrics", {}),
        "conditions": sorted((c["type"], c["status"], c.get("reason", "")) for c in status.get("conditions", ())),
    }


async def test_the_training_pipeline_is_the_same_on_devcluster(
    kube: Kube, services: Services, namespace: str, fates: Fates, tmp_path: Path
) -> None:
    fates.choose = named_fates(steps())
    real = await outcome(kube, namespace)
    assert set(phases_in(real).values()) == {"Succeeded"}, real[0]
    entry = await kube.get(MODEL_REGISTRY.resource, namespace, "digits-v1")
    assert entry["spec"]["metadata"]["val_accuracy"] == "0.9711"
    await services.stop()
    async with platform_on_devcluster(tmp_path / "devcluster", namespace, fates) as other:
        assert differences(real, await outcome(other, namespace)) == {}


async def test_a_pipeline_whose_training_fails_is_the_same_on_devcluster(
    kube: Kube, services: Services, namespace: str, fates: Fates, tmp_path: Path
) -> None:
    """Tried again once, then nothing that depends on it runs, and the last word is said all the same."""
    fates.choose = named_fates(steps(train=Fate(run=0.1, exit_code=3, message="out of memory")))
    real = await outcome(kube, namespace)
    phases = phases_in(real)
    assert (real[0]["body"]["phase"], phases["train"], phases["report"]) == ("Failed", "Failed", "Succeeded")
    await services.stop()
    async with platform_on_devcluster(tmp_path / "devcluster", namespace, fates) as other:
        assert differences(real, await outcome(other, namespace)) == {}
