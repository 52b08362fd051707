"""Shared by the tests of the kinds: the schema of every kind as an API server uses it, and the manifests of examples/."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from gryvia_common.kinds.catalogue import KINDS
from gryvia_common.kinds.crd import object_schema
from gryvia_common.kinds.kind import Kind
from gryvia_devcluster.schema import Structural

ROOT = Path(__file__).resolve().parents[3]


@cache
def compiled(name: str) -> Structural:
    return Structural(object_schema(next(kind for kind in KINDS if kind.name == name)))


class ApiServer:
    """What an API server does with a manifest of ours on create: unknown fields, defaults, refusals."""

    def create(self, manifest: dict[str, Any]) -> tuple[list[str], list[str]]:
        """(unknown fields, refusals); defaults are filled into the manifest."""
        schema = compiled(manifest["kind"])
        unknown = schema.prune(manifest)
        schema.default(manifest)
        causes = schema.validate(manifest, None)
        return unknown, [f"{cause['field']}: {cause['message']}" for cause in causes]

    def refusals(self, kind: Kind[Any, Any], spec: dict[str, Any]) -> list[str]:
        return self.create({**head(kind), "spec": spec})[1]


def head(kind: Kind[Any, Any]) -> dict[str, Any]:
    return {"apiVersion": "gryvia.io/v1alpha1", "kind": kind.name, "metadata": {"name": "x"}}


@pytest.fixture
def api_server() -> ApiServer:
    return ApiServer()


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def example_files() -> dict[str, list[dict[str, Any]]]:
    """Path below examples/ to the manifests in it."""
    files = sorted((ROOT / "examples").rglob("*.yaml"))
    return {
        path.relative_to(ROOT / "examples").as_posix(): list(yaml.safe_load_all(path.read_text())) for path in files
    }
