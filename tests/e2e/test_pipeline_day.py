"""A day with pipelines and models on the embedded platform, by the command alone: what it says is what the services did."""

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
EXAMPLES = Path(__file__).parents[2] / "examples" / "ml-workflow"
FLAKY = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaWorkflow
metadata: {name: flaky}
spec:
  steps:
    - name: list
      script: {image: "python:3.11-slim", command: [python, -c, "import gryvia; gryvia.outputs(shards=[0, 1, 2])"]}
    - name: work
      dependsOn: [list]
      withItems: "{{steps.list.outputs.shards}}"
      script:
        image: python:3.11-slim
        command: [python, -c]
        args: ["import os, sys; sys.exit({{item}} == 1 and not os.path.exists('MARK') and 'no mark yet')"]
    - name: after
      dependsOn: [work]
      script: {image: "python:3.11-slim", command: [python, -c, "print('done')"]}
"""
ENTRY = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaModelRegistry
metadata: {{name: tone-v{version}}}
spec:
  modelName: tone
  version: "{version}"
  stage: {stage}
  artifacts: {{s3Path: "s3://models/tone/{version}"}}
  metadata: {{score: "0.{version}"}}
  {more}
"""
GATED = "promotionPolicy: {metric: score, requireApproval: true}"


class Terminal:
    """A person's."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def gryvia(self, *arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["--kubeconfig", str(self.kubeconfig), *arguments])
        assert result.exit_code == code, result.output
        return result.stdout + result.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self.gryvia(*arguments, "-o", "json"))

    def apply(self, *manifests: str) -> None:
        command = [str(KUBECTL), "--kubeconfig", str(self.kubeconfig), "apply", "-f", "-"]
        done = subprocess.run(command, input="---".join(manifests), text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr

    def jobs(self, workflow: str) -> list[str]:
        names = [one["metadata"]["name"] for one in self.json("list", "jobs")]
        return [name for name in names if name.startswith(f"{workflow}-")]

    def running(self, *arguments: str) -> subprocess.Popen[str]:
        """The command as a process, to read from while it goes on."""
        command = [sys.executable, "-m", "gryvia_cli", "--kubeconfig", str(self.kubeconfig), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def until(self, holds: Callable[[], bool], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, start_up: Any) -> Iterator[Terminal]:
    with start_up(tmp_path_factory.mktemp("pipelines") / ".gryvia").ready() as platform:
        yield Terminal(platform.kubeconfig)


def phases(workflow: dict[str, Any]) -> dict[str, str]:
    return {step["name"]: step["phase"] for step in workflow["status"]["stepStatuses"]}


def test_a_release_that_is_rejected_resumed_and_approved(up: Terminal) -> None:
    up.apply((EXAMPLES / "release.yaml").read_text())
    said = up.gryvia("workflows", "reject", "release", "--when-asked", "--comment", "not before Monday")
    assert said == "workflow release: step ask Rejected by admin\n"
    shown = up.gryvia("workflows", "get", "release", "--wait", code=1)
    assert "release: Failed, 5 of 5 steps" in shown
    assert "rejected by admin: not before Monday" in shown
    assert up.gryvia("workflows", "retry", "release") == "workflow release: retrying ask\n"
    up.gryvia("workflows", "approve", "release", "--when-asked")
    shown = up.gryvia("workflows", "get", "release", "--wait")
    assert 'check: healthy=["true", "true", "true"] region=["eu", "us", "ap"]' in shown
    final = up.json("workflows", "get", "release")
    assert set(phases(final).values()) == {"Succeeded"}
    assert final["status"]["stepStatuses"][2]["approval"]["by"] == "admin"
    drawn = up.gryvia("workflows", "graph", "release").splitlines()
    assert drawn[0].split() == ["✓", "find", "Succeeded", drawn[0].split()[-1]]
    assert sum(line.lstrip("│├╰─ ").startswith("✓") for line in drawn) == 5


def test_a_failed_item_is_told_and_only_it_is_run_again(up: Terminal, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    up.apply(FLAKY.replace("MARK", str(mark)))
    shown = up.gryvia("workflows", "get", "flaky", "--wait", code=1)
    assert "1 of 3 items failed; item 1" in shown
    assert "no mark yet" in shown
    assert up.gryvia("workflows", "approve", "flaky", code=1) == (
        "gryvia: workflow flaky (Failed): no step waits for approval\n"
    )
    before = {
        one["index"]: one["jobName"]
        for one in up.json("workflows", "get", "flaky")["status"]["stepStatuses"][1]["items"]
    }
    mark.touch()
    said = up.gryvia("workflows", "retry", "flaky", "--wait")
    assert said.splitlines()[0] == "workflow flaky: retrying work"
    assert said.splitlines()[-1].startswith("flaky: Succeeded, 3 of 3 steps")
    after = {
        one["index"]: one["jobName"]
        for one in up.json("workflows", "get", "flaky")["status"]["stepStatuses"][1]["items"]
    }
    assert {index for index in before if before[index] != after[index]} == {1}
    assert "is Succeeded and has nothing to retry" in up.gryvia("workflows", "retry", "flaky", code=1)


SLOW = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaWorkflow
metadata: {name: slow}
spec:
  parameters: {SECONDS: "600"}
  steps:
    - name: quick
      script: {image: "python:3.11-slim", command: [python, -c, "print('quick is done')"]}
    - name: train
      dependsOn: [quick]
      jobTemplate:
        type: training
        gpus: 0
        image: python:3.11-slim
        command: [python, -uc, "import os, time; print('training'); time.sleep(int(os.environ['SECONDS'])); print('trained')"]
    - name: work
      dependsOn: [quick]
      withItems: [a, b]
      script:
        image: python:3.11-slim
        command: [python, -uc, "import time; print('on {{item}}'); time.sleep({{parameters.SECONDS}})"]
    - name: after
      dependsOn: [train, work]
      script: {image: "python:3.11-slim", command: [python, -c, "print('after')"]}
    - name: clean
      finally: true
      script: {image: "python:3.11-slim", command: [python, -c, "print('cleaned')"]}
"""


def test_a_run_is_stopped_edited_and_run_again(up: Terminal) -> None:
    """What runs ends at once, finally steps run; the edit alone does nothing, the request runs it; logs of all steps."""
    up.apply(SLOW)
    with up.running("workflows", "logs", "slow", "-f") as program:
        seen = {program.stdout.readline().strip() for _ in range(4)}
        assert seen == {"quick | quick is done", "train | training", "work[0] | on a", "work[1] | on b"}
        said = up.gryvia("workflows", "stop", "slow", "--wait")
        assert said.splitlines()[0] == "workflow slow: stopping; clean still to run"
        assert said.splitlines()[-1].endswith(": cancelled by admin")
        assert program.stdout.read() == "clean | cleaned\n"
        assert program.wait(20) == 0
    stopped = up.json("workflows", "get", "slow")
    ends = {"quick": "Succeeded", "train": "Failed", "work": "Failed", "after": "Skipped", "clean": "Succeeded"}
    assert (stopped["status"]["phase"], phases(stopped)) == ("Failed", ends)
    assert up.jobs("slow") == []
    assert "there is no run to stop" in up.gryvia("workflows", "stop", "slow", code=1)
    up.apply(SLOW.replace('"600"', '"0"'))
    up.until(lambda: "`gryvia workflows run slow` runs it" in up.gryvia("workflows", "list"))
    said = up.gryvia("workflows", "run", "slow", "--wait")
    assert said.splitlines()[0] == "workflow slow: run asked for"
    assert said.splitlines()[-1].startswith("slow: Succeeded, 5 of 5 steps, run 1")
    assert up.jobs("slow") == ["slow-train-n1"]
    assert [run["phase"] for run in up.json("workflows", "runs", "slow")] == ["Succeeded", "Failed"]
    assert up.gryvia("workflows", "logs", "slow").splitlines() == [
        "quick | quick is done",
        "train | training",
        "train | trained",
        "work[0] | on a",
        "work[1] | on b",
        "after | after",
        "clean | cleaned",
    ]
    assert up.gryvia("workflows", "logs", "slow", "after") == "after | after\n"
    assert "clean | cleaned" in up.gryvia("workflows", "logs", "slow", "--run", "0")
    assert "has no step aftr; its steps: quick, train" in up.gryvia("workflows", "logs", "slow", "aftr", code=1)


def test_a_graph_that_cannot_run_says_what_to_change(up: Terminal) -> None:
    up.apply(FLAKY.replace("name: flaky", "name: circle").replace("name: list", "name: list\n      dependsOn: [after]"))
    shown = up.gryvia("workflows", "get", "circle", "--wait", code=1)
    assert "circle: Failed, 0 of 3 steps" in shown
    assert "wait for each other" in shown
    assert "in a circle" in up.gryvia("workflows", "graph", "circle")
    assert "never ran, its spec is wrong" in up.gryvia("workflows", "retry", "circle", code=1)


def test_a_schedule_is_suspended_and_goes_on(up: Terminal) -> None:
    up.apply((EXAMPLES / "nightly-pipeline.yaml").read_text())
    up.gryvia("workflows", "suspend", "nightly")
    assert "0 3 * * * (suspended)" in up.gryvia("workflows", "list")
    up.gryvia("workflows", "resume", "nightly")
    assert "(suspended)" not in up.gryvia("list", "workflows")
    assert up.gryvia("workflows", "runs", "nightly") == "Workflow nightly has not run yet.\n"


def test_versions_go_to_production_and_back_and_the_history_knows_when(up: Terminal) -> None:
    up.apply(ENTRY.format(version=1, stage="staging", more=""))
    assert "model tone-v1: in production since 20" in up.gryvia("models", "promote", "tone-v1", "--yes", "--wait")
    up.apply(ENTRY.format(version=2, stage="staging", more=""))
    up.gryvia("models", "promote", "tone-v2", "--yes", "--wait")
    assert "asks for no approval" in up.gryvia("models", "approve", "tone-v2", code=1)
    terms = up.json("models", "history", "tone")
    assert [(one["entry"], one["reason"], one["successor"]) for one in terms] == [
        ("tone-v2", None, None),
        ("tone-v1", "Replaced", "tone-v2"),
    ]
    assert terms[0]["startTime"] == terms[1]["endTime"]
    then = up.json("models", "history", "tone", "--at", terms[0]["startTime"])
    assert then["entry"] == "tone-v2"
    said = up.gryvia("models", "rollback", "tone-v2", "--yes", "--wait")
    assert "tone-v1 is in production again" in said
    assert [one["entry"] for one in up.json("models", "history", "tone")] == ["tone-v1", "tone-v2", "tone-v1"]
    assert up.json("models", "get", "tone-v2")["spec"]["stage"] == "archived"


def test_a_promotion_that_waits_for_a_person(up: Terminal) -> None:
    up.apply(ENTRY.format(version=5, stage="staging", more=GATED).replace("tone", "gated"))
    assert (
        up.gryvia("models", "approve", "gated-v5", "--comment", "read the report")
        == "model gated-v5: Approved by admin\n"
    )
    deadline = time.monotonic() + 60
    while (entry := up.json("models", "get", "gated-v5"))["spec"]["stage"] != "production":
        assert time.monotonic() < deadline, entry["status"]
        time.sleep(0.1)
    assert [(one["cause"], one["approvedBy"]) for one in up.json("models", "history", "gated")] == [
        ("Promoted", "admin")
    ]
    assert "policy, admin" in up.gryvia("models", "history", "gated-v5")
