"""Jobs and studies from manifest to end on a real API server, with its own Job controller and garbage collector."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tools.realcluster.node import Fate

from gryvia_common.errors import Gone
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.trials import trial_name
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata, uid_of
from gryvia_common.kube.resources import JOBS, PODS, Resource

from .conftest import Fates
from .platform import Services, until

TRIALS = 8


def job(namespace: str, name: str = "train", **spec: Any) -> Json:
    return {
        "apiVersion": "gryvia.io/v1alpha1",
        "kind": "GryviaAIJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": "training", "gpus": 0, "image": "python:3.11-slim", "command": ["python", "-c", "0"], **spec},
    }


def study(namespace: str, **spec: Any) -> Json:
    return {
        "apiVersion": "gryvia.io/v1alpha1",
        "kind": "GryviaAutoTuner",
        "metadata": {"name": "study", "namespace": namespace},
        "spec": {
            "searchAlgorithm": "bayesian",
            "objective": {"metricName": "score", "direction": "maximize"},
            "maxTrials": TRIALS,
            "parallelism": 3,
            "parameterSpace": [{"name": "x", "type": "float", "min": 0, "max": 1}],
            "jobTemplate": job("")["spec"],
            **spec,
        },
    }


def environment(pod: Json) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in pod["spec"]["containers"][0].get("env") or ()}


def scored(pod: Json, attempt: int) -> Fate:
    """A program that reports three steps, the last of which is its score, in its log."""
    score = -((float(environment(pod).get("HP_x", 0)) - 0.3) ** 2)
    lines = [f"gryvia-report {json.dumps({'step': step, 'score': score * (3 - step)})}\n" for step in range(3)]
    return Fate(run=0.3, log="".join(lines))


def reader(kube: Kube, resource: Resource, namespace: str, name: str) -> Callable[[], Any]:
    return lambda: kube.get(resource, namespace, name)


def phase(*wanted: str) -> Callable[[Json], bool]:
    return lambda obj: (obj.get("status") or {}).get("phase") in wanted


ENDED = phase("Succeeded", "Failed")


async def gone(kube: Kube, resource: Resource, namespace: str, name: str) -> bool:
    try:
        await kube.get(resource, namespace, name)
    except Gone:
        return True
    return False


async def test_a_job_runs_and_succeeds(kube: Kube, services: Services, namespace: str, fates: Fates) -> None:
    fates.choose = scored
    created = await kube.create(AI_JOB.resource, job(namespace))
    read = reader(kube, AI_JOB.resource, namespace, "train")
    await until(read, phase("Running", "Succeeded"))
    done = await until(read, ENDED)
    assert done["status"]["phase"] == "Succeeded", done["status"]
    assert done["status"]["observedGeneration"] == done["metadata"]["generation"]
    assert done["status"]["metrics"]["step"] == 2
    assert done["status"]["completionTime"]
    [child] = await kube.list(JOBS, namespace)
    [owner] = metadata(child)["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (uid_of(created), True)
    assert {"type": "Complete", "status": "True"}.items() <= {
        **next(c for c in child["status"]["conditions"] if c["type"] == "Complete")
    }.items()


async def test_a_job_whose_pods_fail_is_tried_again_and_fails(
    kube: Kube, services: Services, namespace: str, fates: Fates
) -> None:
    fates.choose = lambda pod, attempt: Fate(run=0.1, exit_code=3)
    await kube.create(AI_JOB.resource, job(namespace, retryLimit=1))
    done = await until(reader(kube, AI_JOB.resource, namespace, "train"), ENDED)
    assert done["status"]["phase"] == "Failed"
    pods = await kube.list(PODS, namespace)
    assert len(pods) == 2
    assert "BackoffLimitExceeded" in json.dumps(done["status"])


async def test_a_distributed_job_is_an_indexed_one(
    kube: Kube, services: Services, namespace: str, fates: Fates
) -> None:
    await kube.create(
        AI_JOB.resource, job(namespace, distributed={"enabled": True, "framework": "pytorch", "nodes": 3})
    )
    done = await until(reader(kube, AI_JOB.resource, namespace, "train"), ENDED)
    assert done["status"]["phase"] == "Succeeded", done["status"]
    pods = await kube.list(PODS, namespace)
    assert sorted(metadata(pod)["labels"]["batch.kubernetes.io/job-completion-index"] for pod in pods) == [
        "0",
        "1",
        "2",
    ]
    assert {environment(pod)["WORLD_SIZE"] for pod in pods} == {"3"}


async def test_a_suspended_job_waits_and_runs_when_told(
    kube: Kube, services: Services, namespace: str, fates: Fates
) -> None:
    await kube.create(AI_JOB.resource, job(namespace, suspend=True))
    await until(
        reader(kube, JOBS, namespace, "train"),
        lambda found: any(c["type"] == "Suspended" for c in (found.get("status") or {}).get("conditions") or ()),
    )
    assert await kube.list(PODS, namespace) == []
    await kube.patch(AI_JOB.resource, namespace, "train", {"spec": {"suspend": False}})
    done = await until(reader(kube, AI_JOB.resource, namespace, "train"), ENDED)
    assert done["status"]["phase"] == "Succeeded", done["status"]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_deleting_a_job_takes_its_children(
    kube: Kube, services: Services, namespace: str, fates: Fates, propagation: str
) -> None:
    fates.choose = lambda pod, attempt: Fate(run=None)
    await kube.create(AI_JOB.resource, job(namespace))
    await until(reader(kube, AI_JOB.resource, namespace, "train"), phase("Running"))
    await kube.delete(AI_JOB.resource, namespace, "train", propagation=propagation)
    for resource in (AI_JOB.resource, JOBS):
        await until(lambda resource=resource: gone(kube, resource, namespace, "train"), bool)
    await until(lambda: kube.list(PODS, namespace), lambda pods: pods == [])


async def test_a_study_succeeds_with_the_metrics_of_the_logs(
    kube: Kube, services: Services, namespace: str, fates: Fates
) -> None:
    fates.choose = scored
    await kube.create(AUTO_TUNER.resource, study(namespace))
    done = await until(reader(kube, AUTO_TUNER.resource, namespace, "study"), ENDED, seconds=90)
    status = done["status"]
    assert status["phase"] == "Succeeded", status
    assert (status["trialsCompleted"], status.get("trialsFailed", 0)) == (TRIALS, 0)
    best = float(status["bestTrial"]["parameters"]["x"])
    assert status["bestTrial"]["metricValue"] == pytest.approx(-((best - 0.3) ** 2))
    names = Counter(metadata(child)["name"] for child in await kube.list(JOBS, namespace))
    assert names == Counter(trial_name("study", number) for number in range(TRIALS))


async def test_a_study_takes_its_metrics_from_annotations(
    kube: Kube, services: Services, namespace: str, fates: Fates
) -> None:
    """A program without a log that anybody reads: it says its score on its own job."""
    fates.choose = lambda pod, attempt: Fate(run=1.0)
    await kube.create(AUTO_TUNER.resource, study(namespace, maxTrials=3))
    told: set[str] = set()

    async def tell() -> Json:
        for trial in await kube.list(AI_JOB.resource, namespace):
            name = metadata(trial)["name"]
            if name not in told:
                note = {"metadata": {"annotations": {"gryvia.io/metric-score": f"0.{len(told) + 1}"}}}
                await kube.patch(AI_JOB.resource, namespace, name, note)
                told.add(name)
        return await kube.get(AUTO_TUNER.resource, namespace, "study")

    done = await until(tell, ENDED)
    assert done["status"]["phase"] == "Succeeded", done["status"]
    assert done["status"]["bestTrial"]["metricValue"] == 0.3


async def test_a_restart_in_the_middle_of_a_study_repeats_nothing(
    kube: Kube, services: Services, namespace: str, fates: Fates
) -> None:
    fates.choose = scored
    await kube.create(AUTO_TUNER.resource, study(namespace))
    read = reader(kube, AUTO_TUNER.resource, namespace, "study")
    await until(read, lambda found: (found.get("status") or {}).get("trialsCompleted", 0) >= 3)
    await services.stop()
    await services.start()
    done = await until(read, ENDED, seconds=90)
    assert done["status"]["phase"] == "Succeeded", done["status"]
    assert done["status"]["trialsCompleted"] == TRIALS
    for resource in (AI_JOB.resource, JOBS):
        found = Counter(metadata(child)["name"] for child in await kube.list(resource, namespace))
        assert found == Counter(trial_name("study", number) for number in range(TRIALS))
    owners = Counter(metadata(pod)["ownerReferences"][0]["name"] for pod in await kube.list(PODS, namespace))
    assert set(owners.values()) == {1}


async def test_services_of_their_own_processes_lose_nothing_when_one_is_killed(
    kube: Kube, service_processes: Services, namespace: str, fates: Fates
) -> None:
    """SIGKILL of each in turn; what runs it starts it again, as a cluster would."""
    fates.choose = scored
    await kube.create(AUTO_TUNER.resource, study(namespace))
    read = reader(kube, AUTO_TUNER.resource, namespace, "study")
    for done, name in enumerate(("bridge", "jobs", "tuner"), start=1):
        await until(read, lambda found, done=done: (found.get("status") or {}).get("trialsCompleted", 0) >= done)
        pid = service_processes.children[name].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    finished = await until(read, ENDED, seconds=90)
    assert (finished["status"]["phase"], finished["status"]["trialsCompleted"]) == ("Succeeded", TRIALS)
    restarts = {name: child.restarts for name, child in service_processes.children.items() if child.restarts}
    assert restarts == {"bridge": 1, "jobs": 1, "tuner": 1}
    for resource in (AI_JOB.resource, JOBS):
        found = Counter(metadata(child)["name"] for child in await kube.list(resource, namespace))
        assert found == Counter(trial_name("study", number) for number in range(TRIALS))


async def test_deleting_a_namespace_with_a_running_study_ends(
    kube: Kube, services: Services, namespace: str, fates: Fates
) -> None:
    fates.choose = lambda pod, attempt: Fate(run=None)
    await kube.create(AUTO_TUNER.resource, study(namespace))
    await until(lambda: kube.list(PODS, namespace), lambda pods: len(pods) == 3)
    namespaces = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
    await kube.delete(namespaces, "", namespace)
    await until(lambda: gone(kube, namespaces, "", namespace), bool, seconds=60)


async def test_what_is_settled_is_written_no_more(
    kube: Kube, services: Services, namespace: str, fates: Fates, cluster: Any
) -> None:
    """By the server's own audit log: after the end nobody writes, however long one waits."""
    await kube.create(AI_JOB.resource, job(namespace))
    await until(reader(kube, AI_JOB.resource, namespace, "train"), ENDED)

    def writes() -> list[str]:
        return [
            f"{event['verb']} {event['requestURI']} {event.get('userAgent', '')}"
            for event in cluster.audit()
            if event["verb"] in ("create", "patch", "update", "delete")
            and (event.get("objectRef") or {}).get("namespace") == namespace
            and event.get("userAgent", "").startswith("gryvia")
        ]

    total = len(writes())
    # The last event of the job may still be on its way; then it has to be quiet for three seconds.
    settled = 0
    async with asyncio.timeout(30):
        while settled < 30:
            await asyncio.sleep(0.1)
            now = len(writes())
            settled, total = (settled + 1, total) if now == total else (0, now)
    mine = [text for text in writes() if "gryvia-cli" not in text]
    statuses = [text for text in mine if "/status" in text]
    assert 1 <= len(statuses) <= 6, mine
    assert len(mine) - len(statuses) <= 4, mine
