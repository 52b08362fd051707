"""Placeholders in payloads: `{{steps.<step>.outputs.<key>}}`, `{{parameters.<name>}}`, `{{workflow.name}}`, `{{workflow.run}}`, and in
a step with withItems `{{item}}` and `{{item.<key>}}`.

They stand in any string value of a payload block (jobTemplate, script, webhook, register, registry) and in withItems. Text in
double braces that begins otherwise is somebody else's template and stays as it is. Here is their form; only a run has their values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

PLACEHOLDER = re.compile(r"\{\{\s*((?:steps|parameters|workflow|item)(?:\.[A-Za-z0-9_.-]+)?)\s*\}\}")
_FOREIGN = re.compile(r"\{\{\s*([A-Za-z][A-Za-z0-9_]*\.[A-Za-z0-9_.-]+)\s*\}\}")
_OUTPUT = re.compile(r"steps\.([a-z0-9-]+)\.outputs\.([A-Za-z0-9_-]+)")
FORMS = "{{steps.<step>.outputs.<key>}}, {{parameters.<name>}}, {{workflow.name}}, {{workflow.run}}, {{item}} or {{item.<key>}}"


def placeholders(payload: Any) -> Iterator[str]:
    """The paths of all placeholders in a payload."""
    for text in _texts(payload):
        yield from PLACEHOLDER.findall(text)


def output_named(path: str) -> tuple[str, str] | None:
    """The step and the key of a placeholder for an output."""
    match = _OUTPUT.fullmatch(path)
    return (match[1], match[2]) if match else None


def step_named(path: str) -> tuple[str, bool]:
    """The step a placeholder names, empty when it names none, and whether it has a form that can have a value."""
    if not path.startswith("steps"):
        return "", path in ("workflow.name", "workflow.run", "item") or path.startswith(("parameters.", "item."))
    found = output_named(path)
    return (found[0], True) if found else ("", False)


def foreign(payload: Any) -> Iterator[str]:
    """What looks like a placeholder and is none of ours."""
    for text in _texts(payload):
        yield from (path for path in _FOREIGN.findall(text) if not PLACEHOLDER.fullmatch(f"{{{{{path}}}}}"))


def _texts(payload: Any) -> Iterator[str]:
    if isinstance(payload, str):
        if "{{" in payload:
            yield payload
    elif isinstance(payload, dict | list):
        for value in payload.values() if isinstance(payload, dict) else payload:
            yield from _texts(value)
