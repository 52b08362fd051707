"""`gryvia validate`: what an API server would say, without one, and what it would drop in silence."""

from __future__ import annotations

import json
import subprocess
import sys
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
        (
            "{name: a, STEP, dependsOn: [b]}, {name: b, STEP, dependsOn: [a]}",
            "the steps wait for each other: a -> b -> a; remove one of these",
        ),
        ("{name: a, STEP, dependsOn: [a]}", 'step "a": dependsOn: "a" is the step itself; remove it'),
        ("{name: a, STEP}, {name: a, STEP}", 'spec.steps: the name "a" is used 2 times; each step needs its own'),
        (
            "{name: a, STEP}, {name: b, STEP, dependsOn: [c]}",
            'step "b": dependsOn: there is no step "c"; the steps are a, b',
        ),
        ("", "spec.steps: 0 steps; a workflow has 1 to 100"),
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


ARGS = 'script: {image: i, command: ["true"], args: ["%s"]}'


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            f"{{steps: [{{name: a, {STEP}}}, {{name: b, {STEP}, dependsOn: [a], condition: steps.a.status == 'Done'}}]}}",
            """step "b": condition "steps.a.status == 'Done'": "Done" is no phase; a status is one of Pending, Running""",
        ),
        (
            f"{{steps: [{{name: a, {STEP}, condition: 1 + 1}}]}}",
            'step "a": condition "1 + 1": it gives int, not true or false',
        ),
        (
            f"{{steps: [{{name: a, {STEP}}}, {{name: b, {ARGS % '{{steps.a.outputs.x}}'}}}]}}",
            'step "b": {{steps.a.outputs.x}}: step "a" need not have ended by then; add it to dependsOn',
        ),
        (
            f"{{schedule: '0 0 30 2 *', steps: [{{name: a, {STEP}}}]}}",
            "spec.schedule '0 0 30 2 *' names no time within the next five years: change it, or remove it to run once",
        ),
        (
            f"{{schedule: '0 61 * * *', steps: [{{name: a, {STEP}}}]}}",
            "spec.schedule '0 61 * * *': hour '61' is out of range or runs backwards; use 0 to 23",
        ),
        (
            f"{{schedule: '@daily', timeZone: Europe/Berln, steps: [{{name: a, {STEP}}}]}}",
            "spec.timeZone 'Europe/Berln' is no time zone; did you mean Europe/Berlin",
        ),
        (
            "{steps: [{name: a, webhook: {url: 'ftp://h/x', successCondition: ok}}]}",
            """step "a": webhook.url: the URL begins with 'ftp'; use http or https; step "a": webhook.successCondition""",
        ),
    ],
)
def test_a_workflow_is_refused_with_the_sentence_of_the_service(tmp_path: Path, spec: str, words: str) -> None:
    result = RUNNER.invoke(app, ["validate", "-f", str(manifest(tmp_path / "m.yaml", spec, kind="GryviaWorkflow"))])
    assert result.exit_code == 1
    assert words in result.output


ENTRY = "modelName: m, version: '1', artifacts: {s3Path: s3://bucket/m}"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("{modelName: m, version: '1', artifacts: {}}", "spec.artifacts: neither s3Path nor pvcName is set"),
        (
            f"{{{ENTRY}, promotionPolicy: {{metric: acc, minDelta: some}}}}",
            'spec.promotionPolicy.minDelta: "some" is no decimal of 0 or more',
        ),
        (f"{{{ENTRY}, aliases: [a, a]}}", 'spec.aliases: "a" is listed twice; remove one'),
    ],
)
def test_a_registry_entry_is_refused_with_the_sentence_of_the_service(tmp_path: Path, spec: str, words: str) -> None:
    path = manifest(tmp_path / "m.yaml", spec, kind="GryviaModelRegistry")
    result = RUNNER.invoke(app, ["validate", "-f", str(path)])
    assert result.exit_code == 1
    assert words in result.output


@pytest.mark.parametrize(
    ("kind", "spec", "words"),
    [
        (
            "GryviaWorkflow",
            f"{{steps: [{{name: a, {STEP}, retryBackoffSeconds: 5}}]}}",
            "it: valid; has no effect: step a: retryBackoffSeconds: retries is 0, so no attempt follows another\n",
        ),
        (
            "GryviaWorkflow",
            "{steps: [{name: a, webhook: {url: 'https://h/x'}}]}",
            "it: valid; whether webhooks are allowed (step a) is the operator's setting and not judged here\n",
        ),
        (
            "GryviaModelRegistry",
            f"{{{ENTRY}, servingConfig: {{replicas: 1}}}}",
            "it: valid; has no effect: spec.servingConfig: spec.autoServe is false\n",
        ),
        ("GryviaModelRegistry", f"{{{ENTRY}}}", "it: valid\n"),
    ],
)
def test_what_is_valid_says_what_has_no_effect_and_what_was_not_judged(
    tmp_path: Path, kind: str, spec: str, words: str
) -> None:
    result = RUNNER.invoke(app, ["validate", "-f", str(manifest(tmp_path / "m.yaml", spec, kind=kind))])
    assert result.exit_code == 0
    assert words in result.output


def test_other_commands_do_not_load_what_judges_workflows() -> None:
    program = (
        "import sys, gryvia_cli.__main__\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('gryvia_pipelines', 'cel_expr_python', 'cronsim')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


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
