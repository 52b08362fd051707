"""The documents that integrations rely on are what the classes say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gryvia_common.bus.events import CATALOGUE, event_class
from gryvia_common.bus.generate import asyncapi, main, markdown

DOCS = Path(__file__).parents[3] / "docs"


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [ref for value in node.values() for ref in references(value)]
    return [ref for value in node for ref in references(value)] if isinstance(node, list) else []


def test_the_committed_documents_are_up_to_date() -> None:
    assert (DOCS / "events.md").read_text() == markdown()
    assert (DOCS / "asyncapi.yaml").read_text() == asyncapi()


def test_every_event_and_every_field_is_documented() -> None:
    page = markdown()
    for cls in CATALOGUE:
        assert f"`{cls.noun}.{cls.verb}`" in page
        for name, field in cls.model_fields.items():
            assert field.description, f"{cls.__name__}.{name} has no description"
            assert f"`{field.alias or name}`" in page


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    document = yaml.safe_load(asyncapi())
    assert document["asyncapi"] == "3.0.0"
    assert len(document["channels"]) == len(document["operations"]) == len(CATALOGUE)
    for reference in references(document):
        node = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


def test_check_fails_on_a_stale_file_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["generate", str(tmp_path)])
    assert main() == 0
    monkeypatch.setattr(sys, "argv", ["generate", "--check", str(tmp_path)])
    assert main() == 0
    (tmp_path / "events.md").write_text("old")
    assert main() == 1
    assert "events.md" in capsys.readouterr().err
    assert (tmp_path / "events.md").read_text() == "old"


def test_an_event_type_leads_to_its_class() -> None:
    assert all(event_class(f"gryvia.{cls.noun}.{cls.verb}") is cls for cls in CATALOGUE)
    assert event_class("gryvia.future.happened") is None
