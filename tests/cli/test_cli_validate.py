"""`gryvia validate`: what an API server would say, without one, and what it would drop in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gryvia_cli.__main__ import app

RUNNER = CliRunner()
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))


def manifest(path: Path, spec: str, kind: str = "GryviaAIJob", version: str = "gryvia.io/v1alpha1") -> Path:
    path.write_text(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: it}}\nspec: {spec}\n")
    return path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_valid(path: Path) -> None:
    result = RUNNER.invoke(app, ["validate", "-f", str(path)])
    assert result.exit_code == 0, result.output
    assert ": valid" in result.output


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("{type: training, gpus: 0}", ["spec.image: required"]),
        ("{type: train, gpus: 0, image: i}", ["spec.type", "'training'", 'got "train"']),
        ("{type: training, gpus: -1, image: i}", ["spec.gpus", "greater than or equal to 0", "got -1"]),
        ("{type: training, gpus: zero, image: i}", ["spec.gpus", "valid integer", 'got "zero"']),
        ("{type: training, gpus: 0, image: i, comand: [a]}", ["unknown field spec.comand"]),
        ("{type: training, gpus: 0, image: i, distributed: {node: 2}}", ["unknown field spec.distributed.node"]),
        ("{type: training, gpus: 0, image: i, env: [{name: A, vale: b}]}", ["unknown field spec.env[0].vale"]),
    ],
)
def test_what_is_wrong_is_named_by_its_path(tmp_path: Path, spec: str, words: list[str]) -> None:
    result = RUNNER.invoke(app, ["validate", "-f", str(manifest(tmp_path / "m.yaml", spec))])
    assert result.exit_code == 1
    for word in words:
        assert word in result.output


STEP = 'script: {image: i, command: ["true"]}'


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ("{name: a, STEP, dependsOn: [b]}, {name: b, STEP, dependsOn: [a]}", "a, b wait for each other in a circle"),
        ("{name: a, STEP, dependsOn: [a]}", "a wait for each other in a circle"),
        ("{name: a, STEP}, {name: a, STEP}", "spec.steps: 2 steps are called a"),
        (
            "{name: a, STEP}, {name: b, STEP, dependsOn: [c]}",
            "step b: dependsOn: there is no step c; the steps are a, b",
        ),
        ("{STEP}", "spec.steps[0].name: required"),
        ("{name: a, STEP, dependson: [b]}", "unknown field spec.steps[0].dependson"),
        ("{name: a, STEP, retries: often}", "spec.steps[0].retries"),
    ],
)
def test_a_workflow_whose_graph_cannot_run_is_refused(tmp_path: Path, steps: str, words: str) -> None:
    path = manifest(tmp_path / "m.yaml", f"{{steps: [{steps.replace('STEP', STEP)}]}}", kind="GryviaWorkflow")
    result = RUNNER.invoke(app, ["validate", "-f", str(path)])
    assert result.exit_code == 1
    assert words in result.output


def test_what_only_the_service_judges_is_said(tmp_path: Path) -> None:
    path = manifest(tmp_path / "m.yaml", f"{{steps: [{{name: a, {STEP}}}]}}", kind="GryviaWorkflow")
    result = RUNNER.invoke(app, ["validate", "-f", str(path)])
    assert result.exit_code == 0
    assert "it: valid; conditions, placeholders and schedule are judged when it is applied" in result.output


def test_maps_of_any_key_and_whole_kubernetes_types_are_no_unknown_fields(tmp_path: Path) -> None:
    spec = """
  type: training
  gpus: 0
  image: i
  nodeSelector: {any.thing/goes: here}
  volumes: [{name: v, emptyDir: {medium: Memory}}]
  affinity: {nodeAffinity: {}}
  resources: {limits: {cpu: 1}}"""
    assert RUNNER.invoke(app, ["validate", "-f", str(manifest(tmp_path / "m.yaml", spec))]).exit_code == 0


def test_another_api_version_is_refused_with_the_right_one(tmp_path: Path) -> None:
    path = manifest(tmp_path / "m.yaml", "{type: training, gpus: 0, image: i}", version="gryvia.io/v1")
    result = RUNNER.invoke(app, ["validate", "-f", str(path)])
    assert result.exit_code == 1
    assert "write gryvia.io/v1alpha1" in result.output


def test_json_has_one_entry_a_document(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    manifest(path, "{type: training, gpus: 0}")
    path.write_text(path.read_text() + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
    result = RUNNER.invoke(app, ["validate", "-f", str(path), "-o", "json"])
    assert result.exit_code == 1
    assert [(one["name"], one["valid"]) for one in json.loads(result.stdout)] == [("it", False), ("other", None)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "is not valid YAML"),
        ("", "holds no manifest"),
        ("[1]", "document 1 has no apiVersion and kind"),
        ("{apiVersion: v1, kind: X}", "document 1 (X) has no metadata.name"),
    ],
)
def test_a_file_that_is_no_manifest_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(text)
    result = RUNNER.invoke(app, ["validate", "-f", str(path)])
    assert result.exit_code == 1
    assert words in result.stderr


def test_submit_takes_jobs_only_and_says_what_takes_the_rest(tmp_path: Path) -> None:
    path = manifest(tmp_path / "m.yaml", "{}", kind="GryviaAutoTuner")
    result = RUNNER.invoke(app, ["submit", "-f", str(path)])
    assert result.exit_code == 1
    assert f"use `kubectl apply -f {path}`" in result.stderr
