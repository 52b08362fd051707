"""The platform's own life: up and down cleanly, killed and back, two side by side, and a sentence for whatever is in the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gryvia_cli.__main__ import app
from gryvia_cli.platform import embedded
from gryvia_cli.platform.folder import PlatformFolder
from gryvia_cli.platform.services import EmbeddedService
from gryvia_common.errors import Terminal

STUDY = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaAutoTuner
metadata: {name: study}
spec:
  searchAlgorithm: random
  objective: {metricName: score, direction: maximize}
  maxTrials: 8
  parallelism: 2
  parameterSpace: [{name: x, type: float, min: 0, max: 1}]
  jobTemplate:
    type: training
    gpus: 0
    image: python:3.11-slim
    command: [python, -c]
    args: ["import gryvia, os, time; time.sleep(0.4); gryvia.report(step=1, score=float(os.environ['HP_x']))"]
"""
SLEEPER = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaAIJob
metadata: {name: sleeper}
spec: {type: training, gpus: 0, image: "python:3.11-slim", command: [python, -c], args: ["import time; time.sleep(600)"]}
"""


def gryvia(kubeconfig: Path, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["--kubeconfig", str(kubeconfig), *arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def wait_for(wanted: Callable[[], object], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < deadline, f"{what} after {seconds} s"
        time.sleep(0.05)


def apply(kubeconfig: Path, folder: Path, text: str) -> None:
    path = folder / "manifest.yaml"
    path.write_text(text)
    kubectl = Path(sys.executable).parent / "kubectl"
    subprocess.run([kubectl, "--kubeconfig", kubeconfig, "apply", "-f", path], check=True, capture_output=True)


def run_sleeper(kubeconfig: Path, folder: Path) -> None:
    apply(kubeconfig, folder, SLEEPER)
    wait_for(lambda: "Running" in gryvia(kubeconfig, "list", "jobs"), "the job does not run")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything_cleanly_with_exit_code_0(
    tmp_path: Path, start_up: Any, working_for: Any, number: signal.Signals
) -> None:
    with start_up(tmp_path / ".gryvia").ready() as platform:
        run_sleeper(platform.kubeconfig, tmp_path)
        assert any("nats-server" in command for command in working_for(tmp_path).values())
        began = time.monotonic()
        platform.process.send_signal(number)
        # Once more at once, as a terminal and a parent that both pass it on do.
        assert platform.end(number) == 0
        assert time.monotonic() - began < 10
        assert platform.output.endswith("stopping\n")
    assert working_for(tmp_path) == {}


def test_a_signal_during_the_start_ends_it_cleanly(tmp_path: Path, start_up: Any, working_for: Any) -> None:
    platform = start_up(tmp_path / ".gryvia")
    line = platform.process.stdout.readline()
    assert "NATS is ready" in line
    assert platform.end() == 0
    assert working_for(tmp_path) == {}


@pytest.mark.parametrize("options", [(), ("--processes",)], ids=["one process", "processes"])
def test_a_platform_that_was_killed_leaves_nothing_in_the_way(
    tmp_path: Path, start_up: Any, working_for: Any, options: tuple[str, ...]
) -> None:
    folder = tmp_path / ".gryvia"
    with start_up(folder, *options).ready() as platform:
        run_sleeper(platform.kubeconfig, tmp_path)
        killed = platform.process.pid
        assert platform.end(signal.SIGKILL) == -signal.SIGKILL
    assert (
        "no platform runs in" in CliRunner().invoke(app, ["--kubeconfig", str(folder / "kubeconfig"), "status"]).stderr
    )
    left = set(working_for(tmp_path))
    assert killed not in left
    with start_up(folder).ready() as platform:
        assert not left & set(working_for(tmp_path))
        assert gryvia(platform.kubeconfig, "list", "jobs") == "No jobs found in namespace default.\n"
        assert platform.end() == 0
    assert working_for(tmp_path) == {}


def test_two_platforms_run_side_by_side_and_a_second_in_one_folder_is_refused(tmp_path: Path, start_up: Any) -> None:
    with start_up(tmp_path / "a").ready() as first, start_up(tmp_path / "b").ready() as second:
        apply(first.kubeconfig, tmp_path, SLEEPER)
        assert "sleeper" in gryvia(first.kubeconfig, "list", "jobs")
        assert gryvia(second.kubeconfig, "list", "jobs") == "No jobs found in namespace default.\n"
        third = start_up(tmp_path / "a")
        assert third.end(None) == 1
        assert third.output == (
            f"gryvia: a platform is running in {tmp_path / 'a'} already; stop it first, or pass another --folder\n"
        )
        assert "sleeper" in gryvia(first.kubeconfig, "list", "jobs")


def test_with_persist_objects_survive_a_restart_and_a_study_goes_on(tmp_path: Path, start_up: Any) -> None:
    folder = tmp_path / ".gryvia"

    def state(platform: Any) -> dict[str, Any]:
        obj = json.loads(gryvia(platform.kubeconfig, "get", "tuner", "study", "-o", "json"))
        return {"uid": obj["metadata"]["uid"], **(obj.get("status") or {})}

    with start_up(folder, "--persist").ready() as platform:
        apply(platform.kubeconfig, tmp_path, STUDY)
        wait_for(lambda: state(platform).get("trialsCompleted", 0) >= 2, "no trials")
        before = state(platform)
        assert platform.end() == 0
    assert before["phase"] == "Running"
    # What NATS kept is a cache: damaged, it is made again.
    for file in (folder / "nats" / "jetstream").rglob("*"):
        if file.is_file():
            file.write_bytes(os.urandom(2000))
    with start_up(folder, "--persist").ready() as platform:
        wait_for(lambda: state(platform)["phase"] in ("Succeeded", "Failed"), "the study does not go on")
        after = state(platform)
        names = [row["name"] for row in json.loads(gryvia(platform.kubeconfig, "trials", "study", "-o", "json"))]
    assert after["uid"] == before["uid"]
    assert after["phase"] == "Succeeded"
    # A node that went down is no fault of a trial: its pod is made again, and nothing counts as failed.
    assert after.get("trialsFailed", 0) == 0
    assert names[:8] == [f"study-trial-{number}" for number in range(8)]
    done = {trial["name"] for trial in before["trials"] if trial["phase"] == "Succeeded"}
    assert done <= {trial["name"] for trial in after["trials"] if trial["phase"] == "Succeeded"}


def refusal(platform: Any) -> str:
    """The one sentence it ends with."""
    assert platform.end(None) == 1, platform.output
    *progress, sentence = platform.output.splitlines()
    assert all(" s  " in line for line in progress), platform.output
    assert sentence.startswith("gryvia: ")
    return str(sentence)


def test_a_taken_port_is_a_sentence_and_port_chooses_another(tmp_path: Path, start_up: Any, working_for: Any) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        said = refusal(start_up(tmp_path / ".gryvia", "--port", str(port)))
        assert f"127.0.0.1:{port}" in said
        assert "choose another port" in said
    assert working_for(tmp_path) == {}
    with start_up(tmp_path / ".gryvia", "--port", str(port)).ready() as platform:
        assert f"http://127.0.0.1:{port}" in platform.output


def spoil(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(4096))


DAMAGE: dict[str, tuple[Callable[[Path], object], tuple[str, ...], str]] = {
    "folder is a file": (spoil, (), "is a file, not a folder"),
    "state is garbage": (
        lambda root: spoil(root / "cluster" / "state.sqlite"),
        ("--persist",),
        "move it away to start",
    ),
    "kubeconfig is a folder": (
        lambda root: (root / "kubeconfig").mkdir(parents=True),
        (),
        "kubeconfig: is a directory",
    ),
    "token is a folder": (lambda root: (root / "cluster" / "token").mkdir(parents=True), (), "token: is a directory"),
    "log is a folder": (
        lambda root: (root / "logs" / "platform.log").mkdir(parents=True),
        (),
        "platform.log: is a directory",
    ),
    "streams are a file": (lambda root: spoil(root / "nats" / "jetstream"), (), "storage directory is not a directory"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_one_sentence(tmp_path: Path, start_up: Any, working_for: Any, damage: str) -> None:
    spoil_it, options, words = DAMAGE[damage]
    root = tmp_path / "place"
    spoil_it(root)
    said = refusal(start_up(root, *options))
    assert words in said
    assert str(root) in said or damage == "streams are a file"
    assert working_for(tmp_path) == {}
    if root.is_dir():
        shutil.rmtree(root)


def test_a_nats_that_does_not_answer_is_one_sentence_within_seconds(tmp_path: Path, start_up: Any) -> None:
    began = time.monotonic()
    said = refusal(start_up(tmp_path / ".gryvia", environment={"GRYVIA_NATS_URL": "nats://127.0.0.1:1"}))
    assert "127.0.0.1:1 does not answer" in said
    assert "GRYVIA_NATS_URL" in said
    assert time.monotonic() - began < 15


def test_images_that_make_no_sense_are_one_sentence(tmp_path: Path, start_up: Any) -> None:
    (tmp_path / "images.yaml").write_text("images: [")
    said = refusal(start_up(tmp_path / ".gryvia", "--images", str(tmp_path / "images.yaml")))
    assert "images.yaml is not valid YAML" in said


async def test_a_cluster_whose_node_cannot_start_is_no_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "NODE_SECONDS", 0.5)
    spoil(tmp_path / ".gryvia" / "cluster" / "pods")
    options = embedded.PlatformOptions(PlatformFolder(tmp_path / ".gryvia"))
    with pytest.raises(
        Terminal, match=r"the cluster's node has not started after 0 s; see .*platform.log, and if .* is damaged"
    ):
        async with embedded.run_platform(options):
            pass


async def test_a_service_that_crashes_at_its_start_is_named_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "READY_SECONDS", 1.0)
    broken = EmbeddedService("jobs", "gryvia_jobs", "no_such_module", "gryvia_jobs.settings:JobsSettings")
    monkeypatch.setattr(embedded, "SERVICES", (broken,))
    options = embedded.PlatformOptions(PlatformFolder(tmp_path / ".gryvia"))
    with pytest.raises(
        Terminal, match=r"service jobs is not ready after 1 s: it crashed with ModuleNotFoundError: .*no_such_module"
    ):
        async with embedded.run_platform(options):
            pass
