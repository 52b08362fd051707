"""Manifests as users write them: YAML files with any number of documents."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from gryvia_common.errors import Terminal
from gryvia_common.kube.objects import Json


def read_manifests(path: Path) -> list[Json]:
    """The documents of a file, or of standard input for `-`. Terminal when it cannot be read or is no manifest."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Terminal(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", reason="Manifest") from error
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise Terminal(f"{path} is not valid YAML: {' '.join(str(error).split())}", reason="Manifest") from error
    if not documents:
        raise Terminal(f"{path} holds no manifest", reason="Manifest")
    for number, document in enumerate(documents, 1):
        if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
            raise Terminal(f"{path}: document {number} has no apiVersion and kind", reason="Manifest")
        if not isinstance(document.get("metadata"), dict) or not document["metadata"].get("name"):
            raise Terminal(f"{path}: document {number} ({document['kind']}) has no metadata.name", reason="Manifest")
    return documents
