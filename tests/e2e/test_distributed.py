"""A distributed job really runs: three workers find each other by the contract's names and do one collective step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gryvia_cli.manifests import read_manifests
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.objects import Json, labels_of, metadata
from gryvia_common.kube.resources import CONFIG_MAPS, PODS

EXAMPLES = Path(__file__).parents[2] / "examples" / "jobs"
RESOURCES = {"ConfigMap": CONFIG_MAPS, "GryviaAIJob": AI_JOB.resource}
WORKERS = 3


async def create(kube: Any, file: str) -> Json:
    for manifest in read_manifests(EXAMPLES / file):
        metadata(manifest).setdefault("namespace", "default")
        created: Json = await kube.create(RESOURCES[manifest["kind"]], manifest)
    return created


def reached(*phases: str) -> Any:
    return lambda job: (job.get("status") or {}).get("phase") in phases


async def test_three_workers_of_an_indexed_job_do_one_collective_step(running: Any) -> None:
    job = await create(running.kube, "distributed-indexed.yaml")
    name = metadata(job)["name"]

    async def read() -> Json:
        return await running.kube.get(AI_JOB.resource, "default", name)

    final = await running.until(read, reached("Succeeded", "Failed"))
    assert final["status"]["phase"] == "Succeeded", final["status"]
    pods = await running.kube.list(PODS, "default", labels=f"gryvia.io/job={name}")
    assert len(pods) == WORKERS
    outputs = [(await running.kube.logs("default", metadata(pod)["name"])).decode() for pod in pods]
    ranks = {labels_of(pod)["batch.kubernetes.io/job-completion-index"] for pod in pods}
    assert ranks == {"0", "1", "2"}
    # Each brought rank + 1, and each knows the sum of all three.
    assert all("6" in text.split("->")[-1] for text in outputs), outputs


async def test_three_workers_of_a_stateful_set_do_one_collective_step(running: Any) -> None:
    job = await create(running.kube, "distributed-statefulset.yaml")
    name = metadata(job)["name"]

    async def read() -> Json:
        return await running.kube.get(AI_JOB.resource, "default", name)

    await running.until(read, lambda found: (found.get("status") or {}).get("replicasReady") == WORKERS)
    assert (await read())["status"]["phase"] == "Running"

    async def first_log() -> Json:
        return {"status": (await running.kube.logs("default", f"{name}-training-0")).decode()}

    await running.until(first_log, lambda found: "-> 6" in found["status"])
    with pytest.raises(AssertionError):
        # A stateful set never completes.
        await running.until(read, reached("Succeeded", "Failed"), seconds=2)
