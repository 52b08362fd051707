"""The study that `make demo` runs (30 bayesian trials, 4 at once, real training), on a platform of its own.

demo-study: seconds from apply to Succeeded. demo-accuracy: the best trial's validation accuracy.
platform-memory: resident MB of the platform's process and all it started (nats-server, the launcher of pods) after the study, when
the users' pods have ended. A page that two processes share counts twice.

    python bench/demo_study.py
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from gryvia_cli.demonstration import EXAMPLES, apply_study
from gryvia_cli.manifests import read_manifests
from gryvia_cli.platform.crds import connected
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json, metadata

NAMES = ("demo-study", "demo-accuracy", "platform-memory")
STUDY_GOAL = 120.0
ACCURACY_GOAL = 0.97
MEMORY_GOAL = 300.0
GIVE_UP_SECONDS = 600.0
ENDED = ("Succeeded", "Failed")


def run() -> Iterable[dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / ".gryvia"
        command = [sys.executable, "-m", "gryvia_cli", "up", "--folder", str(place)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if "The platform is up" in line:
                        break
                seconds, tuner = asyncio.run(_study(place / "kubeconfig"))
                memory = sum(_resident(pid) for pid in (process.pid, *_descendants(process.pid)))
            finally:
                process.terminate()
                process.stdout.read()
                process.wait()
    state = tuner["status"]
    assert state["phase"] == "Succeeded", state.get("message")
    accuracy = state["bestTrial"]["metricValue"]
    yield _line("demo-study", round(seconds, 1), "s", STUDY_GOAL, seconds <= STUDY_GOAL)
    yield _line("demo-accuracy", accuracy, "validation accuracy", ACCURACY_GOAL, accuracy > ACCURACY_GOAL)
    yield _line("platform-memory", round(memory, 1), "MB", MEMORY_GOAL, memory <= MEMORY_GOAL)


async def _study(kubeconfig: Path) -> tuple[float, Json]:
    async with connected(KubeSettings(kubeconfig=kubeconfig), SystemClock()) as kube:
        began = time.monotonic()
        tuner = await apply_study(kube, read_manifests(EXAMPLES / "hyperparameter-tuning.yaml"))
        namespace, name = metadata(tuner)["namespace"], metadata(tuner)["name"]
        while (tuner.get("status") or {}).get("phase") not in ENDED:
            assert time.monotonic() - began < GIVE_UP_SECONDS, "the study does not end"
            await asyncio.sleep(0.1)
            tuner = await kube.get(AUTO_TUNER.resource, namespace, name)
        return time.monotonic() - began, tuner


def _descendants(pid: int) -> list[int]:
    """Of all its threads; the pods have ended."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found += [child, *_descendants(child)]
    return found


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024 / 1e6


def _line(bench: str, value: float, unit: str, goal: float, holds: bool) -> dict[str, object]:
    return {"bench": bench, "value": value, "unit": unit, "goal": goal, "holds": holds}


if __name__ == "__main__":
    for result in run():
        print(json.dumps(result), flush=True)
