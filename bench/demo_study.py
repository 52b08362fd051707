"""The study that `make demo` runs (30 bayesian trials, 4 at once, real training), on a platform of its own.

demo-study: seconds from apply to Succeeded. demo-accuracy: the best trial's validation accuracy.
platform-memory: resident MB of the platform's process and all it started (nats-server, the launcher of pods) after the study, when
the users' pods have ended. A page that two processes share counts twice.

    python -m bench.demo_study
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Set
from pathlib import Path

from bench.programs import resident
from bench.results import Line, line, run_measure
from gryvia_cli.demonstration import EXAMPLES, apply_example
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


def run(wanted: Set[str] = frozenset(NAMES)) -> Iterable[Line]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / ".gryvia"
        command = [sys.executable, "-m", "gryvia_cli", "up", "--folder", str(place)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                for text in process.stdout:
                    if "The platform is up" in text:
                        break
                seconds, tuner = asyncio.run(_study(place / "kubeconfig"))
                memory = sum(resident(pid) for pid in (process.pid, *_descendants(process.pid)))
            finally:
                process.terminate()
                process.stdout.read()
                process.wait()
    state = tuner["status"]
    assert state["phase"] == "Succeeded", state.get("message")
    accuracy = state["bestTrial"]["metricValue"]
    yield line("demo-study", seconds, "s", STUDY_GOAL, digits=1)
    yield line("demo-accuracy", accuracy, "validation accuracy", ACCURACY_GOAL, digits=4, least=True)
    yield line("platform-memory", memory, "MB", MEMORY_GOAL, digits=1)


async def _study(kubeconfig: Path) -> tuple[float, Json]:
    async with connected(KubeSettings(kubeconfig=kubeconfig), SystemClock()) as kube:
        began = time.monotonic()
        tuner = await apply_example(kube, read_manifests(EXAMPLES / "hyperparameter-tuning.yaml"))
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


if __name__ == "__main__":
    run_measure(run())
