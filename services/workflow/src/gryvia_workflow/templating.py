"""Placeholders in payloads: `{{steps.<step>.outputs.<key>}}`, `{{parameters.<name>}}`, `{{workflow.name}}`, `{{workflow.run}}`, and in
a step with withItems `{{item}}` and `{{item.<key>}}`.

They stand in any string value of a payload block (jobTemplate, script, webhook, register, registry) and in withItems. Text in
double braces that begins otherwise is somebody else's template and stays as it is. Replaced once: what a value brings along is no
placeholder. A placeholder without a value raises; who renders fails the attempt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gryvia_workflow.run import Task, Workflow

PLACEHOLDER = re.compile(r"\{\{\s*((?:steps|parameters|workflow|item)(?:\.[A-Za-z0-9_.-]+)?)\s*\}\}")
_FOREIGN = re.compile(r"\{\{\s*([A-Za-z][A-Za-z0-9_]*\.[A-Za-z0-9_.-]+)\s*\}\}")
_OUTPUT = re.compile(r"steps\.([a-z0-9-]+)\.outputs\.([A-Za-z0-9_-]+)")
FORMS = "{{steps.<step>.outputs.<key>}}, {{parameters.<name>}}, {{workflow.name}}, {{workflow.run}}, {{item}} or {{item.<key>}}"


class Unresolved(Exception):
    """A placeholder has no value; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What placeholders may name: `outputs` gives the whole outputs of a step. `item` counts when `looped`."""

    workflow: Workflow
    run: int
    tasks: Mapping[str, Task]
    outputs: Callable[[Task], Mapping[str, str]]
    item: Any = None
    looped: bool = False

    def value(self, path: str) -> str:
        root, _, rest = path.partition(".")
        if root == "parameters":
            found = (self.workflow.spec.parameters or {}).get(rest)
            if found is None:
                raise Unresolved(f"{{{{{path}}}}}: spec.parameters has no {rest}")
            return found
        if root == "item":
            return self._item(path, rest)
        if path == "workflow.name":
            return self.workflow.name
        if path == "workflow.run":
            return str(self.run)
        match = _OUTPUT.fullmatch(path)
        if match is None or match[1] not in self.tasks:
            raise Unresolved(f"{{{{{path}}}}} is no placeholder; write {FORMS}")
        return self._output(path, self.tasks[match[1]], match[2])

    def _output(self, path: str, task: Task, key: str) -> str:
        if task.phase != "Succeeded":
            raise Unresolved(f"{{{{{path}}}}}: step {task.step} is {task.phase} and has no outputs")
        found = self.outputs(task)
        if key not in found:
            known = f"has the outputs {', '.join(sorted(found))}" if found else "has no outputs"
            raise Unresolved(f"{{{{{path}}}}}: step {task.step} {known}")
        return found[key]

    def _item(self, path: str, rest: str) -> str:
        if not self.looped:
            raise Unresolved(f"{{{{{path}}}}}: the step has no withItems")
        value = self.item
        for key in rest.split(".") if rest else ():
            if not isinstance(value, dict) or key not in value:
                raise Unresolved(f"{{{{{path}}}}}: the item {as_text(self.item)[:80]} has no {key}")
            value = value[key]
        return as_text(value)


def render(payload: Any, scope: Scope) -> Any:
    """The payload with every placeholder replaced. Raises Unresolved."""
    if isinstance(payload, str):
        return PLACEHOLDER.sub(lambda match: scope.value(match[1]), payload) if "{{" in payload else payload
    if isinstance(payload, dict):
        return {key: render(value, scope) for key, value in payload.items()}
    if isinstance(payload, list):
        return [render(value, scope) for value in payload]
    return payload


def placeholders(payload: Any) -> Iterator[str]:
    """The paths of all placeholders in a payload."""
    for text in _texts(payload):
        yield from PLACEHOLDER.findall(text)


def step_named(path: str) -> tuple[str, bool]:
    """The step a placeholder names, empty when it names none, and whether it has a form that can have a value."""
    if not path.startswith("steps"):
        return "", path in ("workflow.name", "workflow.run", "item") or path.startswith(("parameters.", "item."))
    match = _OUTPUT.fullmatch(path)
    return (match[1], True) if match else ("", False)


def foreign(payload: Any) -> Iterator[str]:
    """What looks like a placeholder and is none of ours."""
    for text in _texts(payload):
        yield from (path for path in _FOREIGN.findall(text) if not PLACEHOLDER.fullmatch(f"{{{{{path}}}}}"))


def as_text(value: Any) -> str:
    """A JSON value as a placeholder shows it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _texts(payload: Any) -> Iterator[str]:
    if isinstance(payload, str):
        if "{{" in payload:
            yield payload
    elif isinstance(payload, dict | list):
        for value in payload.values() if isinstance(payload, dict) else payload:
            yield from _texts(value)
