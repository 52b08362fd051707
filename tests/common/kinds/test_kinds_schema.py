"""The generated CRDs are structural, small, described, and the files in the repository are those that the kinds give."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml

from gryvia_common.kinds.catalogue import KINDS
from gryvia_common.kinds.crd import crd, crd_yaml, object_schema
from gryvia_common.kinds.generate import generated, main
from gryvia_common.kinds.kind import Cel, Kind
from gryvia_common.kinds.model import Model
from gryvia_common.kinds.schema import structural
from gryvia_devcluster.schema import check_structural

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
AnyKind = Kind[Any, Any]


def nodes(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, node
    for name, part in node.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from nodes(node[key], f"{path}[]")


@every_kind
def test_the_schema_is_structural(kind: AnyKind) -> None:
    assert check_structural(object_schema(kind)) == []


@every_kind
def test_no_node_holds_what_an_api_server_refuses_or_ignores(kind: AnyKind) -> None:
    for path, node in nodes(object_schema(kind)):
        assert not {"$ref", "$defs", "title", "const", "oneOf", "allOf", "nullable", "examples"} & node.keys(), path
        assert not {"properties", "additionalProperties"} <= node.keys(), path
        assert not [key for key in node if key.startswith("x-gryvia-")], path
        assert node.get("default", "") is not None, path
        assert "type" in node or "x-kubernetes-int-or-string" in node or "x-kubernetes-preserve-unknown-fields" in node


@every_kind
def test_every_field_is_described_for_kubectl_explain(kind: AnyKind) -> None:
    for path, node in nodes(object_schema(kind)):
        if path and path != ".metadata" and not path.endswith("[]"):
            assert node.get("description", "").endswith("."), path


@every_kind
def test_a_crd_is_far_below_what_etcd_takes(kind: AnyKind) -> None:
    assert len(json.dumps(crd(kind))) < 200_000


def unbounded_rules(node: dict[str, Any], bounded: bool = True) -> Iterator[str]:
    if not bounded:
        yield from (rule["rule"] for rule in node.get("x-kubernetes-validations", ()))
    for part in node.get("properties", {}).values():
        yield from unbounded_rules(part, bounded)
    if "items" in node:
        yield from unbounded_rules(node["items"], bounded and "maxItems" in node)
    if "additionalProperties" in node:
        yield from unbounded_rules(node["additionalProperties"], bounded and "maxProperties" in node)


@every_kind
def test_a_rule_stands_only_below_lists_with_a_bound(kind: AnyKind) -> None:
    """An API server multiplies a rule's cost by the longest list there could be, and refuses the CRD above its budget."""
    assert list(unbounded_rules(object_schema(kind))) == []


@every_kind
def test_the_yaml_reads_back_as_the_same_crd(kind: AnyKind) -> None:
    assert yaml.safe_load(crd_yaml(kind)) == crd(kind)


def test_a_job_template_is_complete_wherever_it_stands() -> None:
    by_name = {kind.name: object_schema(kind)["properties"]["spec"]["properties"] for kind in KINDS}
    own = by_name["GryviaAIJob"].keys()
    workflow = by_name["GryviaWorkflow"]
    in_watch = by_name["GryviaModelWatch"]["workflowTemplate"]["properties"]
    for steps in (workflow["steps"], in_watch["steps"]):
        assert steps["items"]["properties"]["jobTemplate"]["properties"].keys() == own
    assert by_name["GryviaAutoTuner"]["jobTemplate"]["properties"].keys() == own


def test_the_checked_in_files_are_those_that_the_kinds_give(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", str(root)]) == 0, capsys.readouterr().err


def test_check_names_files_that_are_missing_changed_or_too_many(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    (tmp_path / "crds/gryviaagents.yaml").unlink()
    (tmp_path / "crds/gryviathings.yaml").write_text("kind: Gone\n")
    page = tmp_path / "docs/kinds/gryviaagent.md"
    page.write_text(page.read_text() + "more\n")
    assert main(["--check", str(tmp_path)]) == 1
    named = [line.split(" ")[0] for line in capsys.readouterr().err.splitlines()]
    assert named == ["crds/gryviaagents.yaml", "crds/gryviathings.yaml", "docs/kinds/gryviaagent.md"]
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    assert not (tmp_path / "crds/gryviathings.yaml").exists()


def test_another_interpreter_with_another_hash_seed_gives_the_same_files() -> None:
    code = (
        "import hashlib, json; from gryvia_common.kinds.generate import generated;"
        "print(hashlib.sha256(json.dumps(generated()).encode()).hexdigest())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_a_page_says_of_each_kind_what_it_is_and_shows_an_example() -> None:
    files = generated()
    for kind in KINDS:
        page = files[f"docs/kinds/{kind.name.lower()}.md"]
        assert kind.summary in page
        assert "## Example" in page
        assert f"[{kind.name}]" in files["docs/kinds/README.md"]


def test_a_union_that_no_structural_schema_can_say_is_refused_by_the_generator() -> None:
    class Either(Model):
        value: int | bool

    with pytest.raises(TypeError, match="union"):
        structural(Either)


def test_a_rule_may_stand_on_a_field_or_on_a_model_and_both_hold() -> None:
    class Part(Model):
        low: int
        rules = (Cel("self.low > 0", "low must be above 0"),)

    class Whole(Model):
        part: Annotated[Part, Cel("self.low < 9", "low must be below 9", ".low")]

    rules = structural(Whole)["properties"]["part"]["x-kubernetes-validations"]
    assert [(rule["rule"], rule.get("fieldPath")) for rule in rules] == [
        ("self.low > 0", None),
        ("self.low < 9", ".low"),
    ]


def test_importing_one_kind_imports_no_other() -> None:
    """The services start with the kinds they need."""
    code = (
        "import sys, gryvia_common.kinds.aijob;print([m for m in sys.modules if m.startswith('gryvia_common.kinds.')])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for other in ("autotuner", "workflow", "catalogue", "schema", "crd", "modelregistry"):
        assert f"kinds.{other}'" not in loaded
