"""`gryvia demo`: what it shows of a study that goes well and of one that does not, and its exit code. (Its own two studies take a
minute and a half and are a measure: bench/demo_study.py.)"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gryvia_cli import demonstration
from gryvia_cli.__main__ import app

STUDY = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaAutoTuner
metadata: {{name: {name}}}
spec:
  searchAlgorithm: {algorithm}
  ashaConfig: {{minResource: 1, maxEpochs: 9, reductionFactor: 3}}
  objective: {{metricName: score, direction: maximize}}
  maxTrials: 6
  parallelism: 1
  parameterSpace: [{{name: x, type: float, min: 0, max: 1}}]
  jobTemplate:
    type: training
    gpus: 0
    image: python:3.11-slim
    command: [python, -c]
    args:
      - |
        import os, time, gryvia
        x = float(os.environ["HP_x"])
        for epoch in range(1, 10):
            gryvia.report(epoch=epoch, score={score})
            time.sleep(0.25)
"""


PIPELINE = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaWorkflow
metadata: {{name: small}}
spec:
  steps:
    - name: train
      script: {{image: "python:3.11-slim", command: [python, -c], args: ["import gryvia; gryvia.outputs(score={score})"]}}
    - name: register
      type: register
      dependsOn: [train]
      register:
        name: small-v1
        modelName: small
        version: "1"
        artifacts: {{s3Path: "s3://models/small"}}
        metadata: {{score: "{{{{steps.train.outputs.score}}}}"}}
        promotionPolicy: {{metric: score, threshold: "0.5"}}
"""


@pytest.fixture
def studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small ones in place of the demo's own, and a small pipeline."""
    folder = tmp_path / "examples" / "ml-workflow"
    folder.mkdir(parents=True)
    (folder / demonstration.PIPELINE).write_text(PIPELINE.format(score="0.75"))
    monkeypatch.setattr(demonstration, "EXAMPLES", folder)
    return folder


def demo(folder: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["demo", "--once", "--folder", str(folder / ".gryvia"), *options])
    return result.exit_code, result.output


def test_it_shows_progress_the_trials_the_stopped_ones_and_the_best(tmp_path: Path, studies: Path) -> None:
    # Each trial is worse than the one before: all but the first are stopped at their first rung.
    score = "1 / (1 + int(os.environ['TRIAL_NAME'].rsplit('-', 1)[1]))"
    for file in demonstration.STUDIES:
        (studies / file).write_text(STUDY.format(name="weak", algorithm="asha", score=score))
    code, output = demo(tmp_path)
    assert code == 0, output
    assert re.search(r"^ +\d+\.\d\d s  tuner is ready$", output, re.MULTILINE)
    assert "weak  applied from examples/ml-workflow/hyperparameter-tuning.yaml" in output
    assert "tuner weak: Running, 2 of 6 trials done" in output
    assert re.search(r"^\* +0 +[\d.]+ +1 +Succeeded", output, re.MULTILINE)
    early = next(
        line for line in output.splitlines() if line.startswith("stopped early, by what they had reported: trial")
    )
    # Which rung it was is a matter of when the log was read, and trials are listed by rung.
    trials = re.findall(r"\d+(?=[,; ]|$)", re.sub(r"at epoch \d+", "", early))
    assert sorted(trials) == ["1", "2", "3", "4", "5"], early
    assert "best score 1.0000 with x=" in output
    assert "The platform is up" not in output
    pipeline = output[output.index("small  applied from examples/ml-workflow/training-pipeline.yaml") :]
    said = [line.split(maxsplit=2)[1:] for line in pipeline.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]
    assert ["workflow.step", "small step=train phase=Running child=small-train"] in said
    kinds = [kind for kind, _ in said]
    assert kinds[0] == "workflow.started"
    assert {"workflow.step", "workflow.succeeded", "model.registered", "model.promoted"} <= set(kinds)
    assert re.search(r"^✓ +register +Succeeded", pipeline, re.MULTILINE)
    assert "small: Succeeded, 2 of 2 steps" in pipeline
    assert pipeline.splitlines()[-1].startswith(
        "model small version 1: production (Promoted by its policy, score 0.75)"
    )


def test_a_model_that_is_not_good_enough_is_shown_as_it_is(tmp_path: Path, studies: Path) -> None:
    for file in demonstration.STUDIES:
        (studies / file).write_text(STUDY.format(name="quick", algorithm="random", score="1").replace("0.25", "0"))
    (studies / demonstration.PIPELINE).write_text(PIPELINE.format(score="0.25"))
    code, output = demo(tmp_path)
    assert code == 0, output
    assert output.splitlines()[-1].startswith("model small version 1: staging (Rejected by its policy, score 0.25)")
    assert "model.promoted" not in output


def test_a_study_that_fails_is_exit_code_1_and_says_why(tmp_path: Path, studies: Path) -> None:
    for file in demonstration.STUDIES:
        (studies / file).write_text(STUDY.format(name="broken", algorithm="random", score="1 / 0"))
    code, output = demo(tmp_path)
    assert code == 1
    assert "broken Failed" in output
    assert "division by zero" in output


def test_examples_that_are_not_there_are_a_sentence(tmp_path: Path, studies: Path) -> None:
    code, output = demo(tmp_path)
    assert code == 1
    assert f"gryvia: cannot read {studies / 'hyperparameter-tuning.yaml'}: No such file or directory" in output
