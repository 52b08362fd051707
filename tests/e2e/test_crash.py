"""SIGKILL of any part in the middle of a study: the same trials, none twice, none lost, the study Succeeded."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from typing import Any

import pytest

from gryvia_cli.commands.trials import read_trials
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.objects import Json, metadata, uid_of
from gryvia_common.kube.resources import JOBS, PODS

TRIALS = 14
SCRIPT = """
import os, time, gryvia
x = float(os.environ["HP_x"])
for step in range(3):
    gryvia.report(step=step, score=-(x - 0.3) ** 2)
    time.sleep(0.15)
"""


def study() -> Json:
    return {
        "apiVersion": "gryvia.io/v1alpha1",
        "kind": "GryviaAutoTuner",
        "metadata": {"name": "study", "namespace": "default"},
        "spec": {
            "searchAlgorithm": "bayesian",
            "objective": {"metricName": "score", "direction": "maximize"},
            "maxTrials": TRIALS,
            "parallelism": 3,
            "parameterSpace": [{"name": "x", "type": "float", "min": 0, "max": 1}],
            "jobTemplate": {
                "type": "training",
                "gpus": 0,
                "image": "python:3.11-slim",
                "command": ["python", "-c"],
                "args": [SCRIPT],
            },
        },
    }


def ended(tuner: Json) -> bool:
    return (tuner.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def completed(count: int) -> Any:
    return lambda tuner: (tuner.get("status") or {}).get("trialsCompleted", 0) >= count or ended(tuner)


@pytest.mark.parametrize("victim", ["jobs", "tuner", "bridge", "nats", "nats and its data"])
async def test_a_study_survives_the_kill_of_any_part(processes: Any, victim: str, stored_events: Any) -> None:
    platform, kube = processes.platform, processes.kube
    await kube.create(AUTO_TUNER.resource, study())

    async def tuner() -> Json:
        return await kube.get(AUTO_TUNER.resource, "default", "study")

    await processes.until(tuner, completed(4))
    if victim in platform.services:
        killed = platform.services[victim].pid
        os.kill(killed, signal.SIGKILL)
    elif victim == "nats":
        os.kill(platform.nats.pid, signal.SIGKILL)
    else:
        # Its supervisor brings it back, with an empty store.
        os.kill(platform.nats.pid, signal.SIGKILL)
        shutil.rmtree(platform.nats.data_dir / "jetstream")

    final = await processes.until(tuner, ended, seconds=90)
    assert final["status"]["phase"] == "Succeeded", final["status"].get("message")
    assert final["status"]["trialsCompleted"] == TRIALS
    assert final["status"].get("trialsFailed", 0) == 0
    _, trials = await read_trials(kube, "default", "study")
    assert [trial.name for trial in trials] == [f"study-trial-{number}" for number in range(TRIALS)]
    assert len({tuple(trial.parameters.items()) for trial in trials}) == TRIALS
    for resource in (AI_JOB.resource, JOBS):
        names = Counter(metadata(child)["name"] for child in await kube.list(resource, "default"))
        assert names == Counter(f"study-trial-{number}" for number in range(TRIALS))
    owners = Counter(metadata(pod)["ownerReferences"][0]["name"] for pod in await kube.list(PODS, "default"))
    assert owners == Counter(f"study-trial-{number}" for number in range(TRIALS))
    if victim != "nats and its data":
        events = await stored_events(platform.bus("reader"))
        assert len({event.id for event in events}) == len(events)
        done = Counter(
            event.data.get("trial") or event.name for event in events if event.type == "gryvia.trial.completed"
        )
        assert len(done) == TRIALS
        assert set(done.values()) == {1}
    assert uid_of(final)
