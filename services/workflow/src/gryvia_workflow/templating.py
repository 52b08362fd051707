"""Payloads with the values of a run in place of their placeholders (gryvia_pipelines.placeholders has their form).

Replaced once: what a value brings along is no placeholder. A placeholder without a value raises; who renders fails the attempt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gryvia_pipelines.placeholders import FORMS, PLACEHOLDER, output_named
from gryvia_workflow.run import Task, Workflow


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
        named = output_named(path)
        if named is None or named[0] not in self.tasks:
            raise Unresolved(f"{{{{{path}}}}} is no placeholder; write {FORMS}")
        step, key = named
        return self._output(path, self.tasks[step], key)

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


def as_text(value: Any) -> str:
    """A JSON value as a placeholder shows it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
