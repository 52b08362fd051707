"""A user's first day on the embedded platform: a real kubectl and the gryvia command beside it, good input and bad."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gryvia_cli.__main__ import app

KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"
TUNER = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaAutoTuner
metadata: {{name: {name}}}
spec:
  searchAlgorithm: {algorithm}
  objective: {{metricName: score, direction: {direction}}}
  maxTrials: 3
  parallelism: 3
  parameterSpace: {space}
  jobTemplate:
    type: training
    gpus: 0
    image: {image}
    command: [python, -c]
    args: ["{script}"]
"""
GOOD = "import gryvia, os; gryvia.report(step=1, score=float(os.environ['HP_x']))"
SOME_NAN = (
    "import gryvia, os; gryvia.report(step=1, score=float('nan') if os.environ['TRIAL_NAME'][-1] == '1' else 0.5)"
)
X = "[{name: x, type: float, min: 0, max: 1}]"
JOB = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaAIJob
metadata: {{name: {name}}}
spec: {{type: training, gpus: 0, image: "python:3.11-slim", retryLimit: {retries}, command: [python, -u, -c], args: ["{script}"]}}
"""


def tuner(name: str, **changes: str) -> str:
    values = {"algorithm": "random", "direction": "maximize", "space": X, "image": "python:3.11-slim", "script": GOOD}
    return TUNER.format(name=name, **{**values, **changes})


class Terminal:
    """The other terminal of a user."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.kubeconfig = kubeconfig
        self.folder = folder

    def gryvia(self, *arguments: str, code: int = 0, input: str | None = None) -> Any:
        result = CliRunner().invoke(app, ["--kubeconfig", str(self.kubeconfig), *arguments], input=input)
        assert result.exit_code == code, result.output
        return result

    def kubectl(self, *arguments: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(KUBECTL), "--kubeconfig", str(self.kubeconfig), *arguments]
        return subprocess.run(command, input=input, capture_output=True, text=True, timeout=60, check=False)

    def apply(self, *manifests: str) -> None:
        result = self.kubectl("apply", "-f", "-", input="---".join(manifests))
        assert result.returncode == 0, result.stderr

    def file(self, text: str) -> str:
        path = self.folder / f"{time.monotonic_ns()}.yaml"
        path.write_text(text)
        return str(path)

    def until(self, kind: str, name: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + 60
        while True:
            obj: dict[str, Any] = json.loads(self.gryvia("get", kind, name, "-o", "json").stdout)
            if wanted(obj.get("status") or {}):
                return obj
            assert time.monotonic() < deadline, obj.get("status")
            time.sleep(0.1)


def ended(status: dict[str, Any]) -> bool:
    return status.get("phase") in ("Succeeded", "Failed", "Cancelled")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, start_up: Any) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("first-day")
    with start_up(folder / ".gryvia").ready() as platform:
        yield Terminal(platform.kubeconfig, folder)


def test_a_study_by_kubectl_and_what_each_command_shows_of_it(up: Terminal) -> None:
    up.apply(tuner("study"))
    final = up.until("tuner", "study", ended)
    assert final["status"]["phase"] == "Succeeded"
    columns = up.kubectl("get", "gryviaautotuners", "study").stdout.splitlines()[1].split()
    assert columns[:5] == ["study", "random", "3", "3", "Succeeded"]
    described = up.kubectl("describe", "gryviaautotuner", "study").stdout
    assert "BestTrialFound" in described
    table = up.gryvia("trials", "study").stdout.splitlines()
    assert table[0].split() == ["TRIAL", "x", "score", "PHASE", "TIME"]
    assert [line.split()[0] for line in table[1:4]].count("*") == 1
    assert "3 of 3 trials done" in table[-1]
    rows = json.loads(up.gryvia("trials", "study", "-o", "json").stdout)
    assert [row["number"] for row in rows] == [0, 1, 2]
    best = max(rows, key=lambda row: row["metricValue"])
    assert [row["best"] for row in rows] == [row is best for row in rows]
    shown = up.gryvia("status", "study").stdout
    assert "3 of 3 done" in shown
    assert f"by {best['name']}: x=" in shown
    glance = json.loads(up.gryvia("status", "-o", "json").stdout)
    assert glance["tuners"][0]["trialsDone"] == 3
    assert "study" in up.gryvia("status").stdout
    listed = up.gryvia("list", "jobs", "-A").stdout.splitlines()
    assert listed[0].split() == ["NAMESPACE", "NAME", "TYPE", "GPUS", "PHASE", "AGE"]
    assert "Ready" in up.gryvia("list", "nodes").stdout
    events = [
        json.loads(line)
        for line in up.gryvia("events", "tuner", "--since", "all", "--limit", "2", "-o", "json").stdout.splitlines()
    ]
    assert [event["type"] for event in events] == ["gryvia.tuner.started", "gryvia.tuner.completed"]
    assert all(event["specversion"] == "1.0" for event in events)
    assert "trial.completed" in up.gryvia("events", "trial.completed", "--since", "1h", "--limit", "3").stdout


def test_explain_knows_the_fields(up: Terminal) -> None:
    assert "metricName" in up.kubectl("explain", "gryviaautotuner.spec.objective").stdout


def test_what_only_the_service_can_judge_ends_failed_with_what_to_change(up: Terminal) -> None:
    five = ", ".join(f"{{name: p{n}, type: int, min: 1, max: 11}}" for n in range(5))
    up.apply(
        tuner("too-many", algorithm="grid", space=f"[{five}]"),
        tuner("no-bounds", space="[{name: x, type: float}]"),
        tuner("bad-direction", direction="upwards"),
        tuner("crossed", space="[{name: x, type: float, min: 2, max: 1}]"),
        tuner("no-image").replace("    image: python:3.11-slim\n", ""),
        tuner("no-trials").replace("maxTrials: 3", "maxTrials: 0"),
        tuner("log-zero", space="[{name: x, type: float, min: 0, max: 1, scale: log}]"),
    )
    words = {
        "too-many": ("100,000", "161,051"),
        "no-bounds": ("x", "min", "max"),
        "bad-direction": ("upwards", "minimize", "maximize"),
        "crossed": ("x", "min", "max"),
        "no-image": ("jobTemplate.image",),
        "no-trials": ("maxTrials", "0"),
        "log-zero": ("x", "min", "log"),
    }
    for name, expected in words.items():
        state = up.until("tuner", name, ended)["status"]
        assert state["phase"] == "Failed", name
        for word in expected:
            assert word in state["message"].replace("161051", "161,051").replace("100000", "100,000"), state["message"]
        assert not state.get("trials")


def test_a_manifest_that_breaks_the_schema_is_refused_by_its_field(up: Terminal) -> None:
    for manifest, field in (
        (tuner("t", algorithm="guess"), "spec.searchAlgorithm"),
        (tuner("t").replace("maxTrials: 3", "maxTrials: lots"), "spec.maxTrials"),
        (tuner("t").replace("gpus: 0", "gpus: many"), "spec.jobTemplate.gpus"),
        (tuner("t").replace("maxTrials", "maxTrails"), "spec.maxTrails"),
    ):
        result = up.kubectl("apply", "-f", "-", input=manifest)
        assert result.returncode == 1
        assert field in result.stderr
    for spec, sentence in (
        ("{type: training, gpus: 0}", "job j was refused: spec.image: Required value"),
        ("{type: train, gpus: 0, image: i}", 'job j was refused: spec.type: Unsupported value: "train"'),
        ("{type: training, gpus: 0, image: i, imagee: i}", "unknown field spec.imagee"),
    ):
        path = up.file(f"apiVersion: gryvia.io/v1alpha1\nkind: GryviaAIJob\nmetadata: {{name: j}}\nspec: {spec}\n")
        result = up.gryvia("submit", "-f", path, code=1)
        assert sentence in result.stderr
        assert "<nil>" not in result.stderr
        assert result.stderr.count("\n") == 1


def test_a_metric_that_is_no_number_costs_one_trial_its_value_and_not_the_study(up: Terminal) -> None:
    up.apply(tuner("some-nan", script=SOME_NAN))
    state = up.until("tuner", "some-nan", ended)["status"]
    assert state["phase"] == "Succeeded"
    by_name = {trial["name"]: trial for trial in state["trials"]}
    assert by_name["some-nan-trial-0"]["metricValue"] == 0.5
    assert "metricValue" not in by_name["some-nan-trial-1"]
    assert "score" in by_name["some-nan-trial-1"]["message"]
    assert "nan" in by_name["some-nan-trial-1"]["message"].lower()


def test_a_job_by_submit_with_its_logs_and_its_metrics(up: Terminal) -> None:
    script = "import gryvia, time; print('begin'); time.sleep(0.5); gryvia.report(step=2, loss=0.25); print('end')"
    result = up.gryvia("submit", "-f", up.file(JOB.format(name="logged", retries=0, script=script)), "--logs")
    lines = result.stdout.splitlines()
    assert lines[0] == "job logged created"
    assert lines[1] == "begin"
    assert lines[-2:] == ["end", "job logged: Succeeded"]
    assert lines.count("begin") == 1
    assert "metric loss" in up.gryvia("status", "logged").stdout
    assert up.gryvia("logs", "logged").stdout.splitlines() == lines[1:-1]
    assert "no pod with index 4" in up.gryvia("logs", "logged", "--replica", "4", code=1).stderr
    assert (
        "exists already"
        in up.gryvia("submit", "-f", up.file(JOB.format(name="logged", retries=0, script=script)), code=1).stderr
    )
    assert up.gryvia("cancel", "logged", "--yes").stdout == "job logged has ended already (Succeeded)\n"
    up.gryvia("delete", "job", "logged", code=1, input="n\n")
    assert up.gryvia("delete", "job", "logged", "-y").stdout == "job logged deleted\n"
    gone = up.gryvia("status", "logged", code=1).stderr
    assert gone == "gryvia: no job, no tuner and no workflow logged in namespace default\n"


def test_following_goes_on_in_the_next_pod_after_a_failure(up: Terminal) -> None:
    flag = up.folder / "flag"
    script = (
        f"import os, sys; first = not os.path.exists('{flag}'); open('{flag}', 'w'); "
        "print('first' if first else 'second'); sys.exit(first)"
    )
    result = up.gryvia("submit", "-f", up.file(JOB.format(name="again", retries=1, script=script)), "--logs")
    assert result.stdout.splitlines() == ["job again created", "first", "second", "job again: Succeeded"]
    assert "the job goes on in pod again-" in result.stderr


def test_a_failed_job_is_exit_code_1_and_says_why(up: Terminal) -> None:
    result = up.gryvia(
        "submit",
        "-f",
        up.file(JOB.format(name="broken", retries=0, script="raise SystemExit('no data')")),
        "--wait",
        code=1,
    )
    assert "job broken: Failed" in result.stdout
    assert "no data" in result.stdout


def test_following_a_log_costs_no_more_than_the_log(up: Terminal, tmp_path: Path) -> None:
    """A process of its own, so that what arrives is what was streamed; the job ends it."""
    script = "import time; [(print('x' * 1000), time.sleep(0.02)) for _ in range(100)]"
    up.gryvia("submit", "-f", up.file(JOB.format(name="long", retries=0, script=script)))
    command = [sys.executable, "-m", "gryvia_cli", "--kubeconfig", str(up.kubeconfig), "logs", "long", "-f"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert shown == ("x" * 1000 + "\n") * 100


def test_a_running_job_is_cancelled_and_its_pod_stops(up: Terminal) -> None:
    up.gryvia("submit", "-f", up.file(JOB.format(name="endless", retries=0, script="import time; time.sleep(600)")))
    up.until("job", "endless", lambda state: state.get("phase") == "Running")
    assert "endless" not in up.gryvia("queue").stdout
    assert up.gryvia("cancel", "endless", "-y").stdout == "job endless cancelled\n"
    assert up.until("job", "endless", ended)["status"]["phase"] == "Cancelled"


def test_empty_lists_are_lists_and_sentences(up: Terminal) -> None:
    for kind in ("jobs", "tuners", "experiments", "workflows"):
        assert json.loads(up.gryvia("list", kind, "-n", "nobody", "-o", "json").stdout) == []
        assert up.gryvia("-n", "nobody", "list", kind).stdout == f"No {kind} found in namespace nobody.\n"
    assert json.loads(up.gryvia("queue", "-n", "nobody", "-o", "json").stdout) == []
    assert json.loads(up.gryvia("quota", "-o", "json").stdout) == []
    assert "no quota of a team x" in up.gryvia("quota", "x", code=1).stderr


def test_a_job_that_fits_nowhere_waits_in_the_queue_with_the_reason(up: Terminal) -> None:
    for name, priority in (("low", 1), ("high", 9)):
        text = JOB.format(name=name, retries=0, script="pass").replace("gpus: 0", f"gpus: 512, priority: {priority}")
        up.gryvia("submit", "-f", up.file(text), "-n", "default")
    up.until("job", "low", lambda state: state.get("phase") == "Pending" and bool(state.get("message")))
    rows = [line.split() for line in up.gryvia("queue").stdout.splitlines()]
    assert rows[0] == ["POSITION", "NAME", "PRIORITY", "GPUS", "QUEUE", "PHASE", "AGE", "REASON"]
    assert [row[:4] for row in rows[1:]] == [["1", "high", "9", "512"], ["2", "low", "1", "512"]]
    assert rows[2][4] == "Pending"
    assert len(rows[2]) > 6
    up.gryvia("delete", "job", "low", "high", "--yes")


def test_events_of_one_namespace(up: Terminal) -> None:
    lines = up.gryvia(
        "-n", "default", "events", "job", "--since", "all", "--limit", "2", "-o", "json"
    ).stdout.splitlines()
    assert [json.loads(line)["data"]["namespace"] for line in lines] == ["default", "default"]
