"""Every example and every example of a reference page is a manifest that an API server and the services take as it is."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from gryvia_common.kinds.catalogue import BY_NAME, KINDS

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").rglob("*.yaml"))
OURS = {
    f"{path}#{number}": manifest
    for path in FILES
    for number, manifest in enumerate(yaml.safe_load_all((ROOT / path).read_text()))
    if manifest["kind"] in BY_NAME
}
PAGES = {kind.name: yaml.safe_load(kind.reference.example) for kind in KINDS if kind.reference}


@pytest.mark.parametrize("name", [*OURS, *PAGES])
def test_an_example_is_taken_as_it_is(api_server: Any, name: str) -> None:
    manifest = (OURS | PAGES)[name]
    stored = copy.deepcopy(manifest)
    assert api_server.create(stored) == ([], [])
    kind = BY_NAME[manifest["kind"]]
    kind.spec.model_validate(stored["spec"])
    assert set(manifest) == {"apiVersion", "kind", "metadata", "spec"}
    assert manifest["apiVersion"] == kind.resource.api_version


def test_every_kind_shows_an_example_of_its_own_on_its_page() -> None:
    assert {name: manifest["kind"] for name, manifest in PAGES.items()} == {kind.name: kind.name for kind in KINDS}


def test_every_example_file_is_listed(root: Path) -> None:
    text = (root / "examples/README.md").read_text()
    assert [path for path in FILES if f"({path.removeprefix('examples/')})" not in text] == []


@pytest.mark.parametrize("name", [name for name, manifest in OURS.items() if "python:" in str(manifest)])
def test_programs_of_examples_keep_to_one_thread_and_compile(name: str) -> None:
    """Thirty trials with a thread pool each would fight for two cores."""
    parameters = OURS[name]["spec"].get("parameters", {})
    for template in templates(OURS[name]["spec"]):
        if "gryvia.report" in str(template):
            own = {one["name"]: one["value"] for one in template.get("env", [])}
            assert {**own, **parameters}["OMP_NUM_THREADS"] == "1"
        for text in [*template.get("command", []), *template.get("args", [])]:
            if "import" in text:
                compile(text, name, "exec")


def templates(node: Any) -> list[dict[str, Any]]:
    """Every part that has an image, wherever it stands."""
    found = [node] if isinstance(node, dict) and "image" in node else []
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return found + [template for part in parts for template in templates(part)]
