"""`x-kubernetes-validations`: CEL rules at every position of a schema, checked against an object and its predecessor.

Rules are compiled when an object first has a value at their position. A rule that mentions `oldSelf` is a transition
rule: it is skipped where there is no correlated old value, unless it takes an optional one. A rule without `oldSelf` is
not held against a value that did not change (ratcheting).
"""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.schema.causes import OMIT, Cause, duplicate, forbidden, invalid, required
from gryvia_devcluster.schema.cel.compiled import CompiledRule, aligned, self_value
from gryvia_devcluster.schema.cel.engine import CompileError, EvaluationError
from gryvia_devcluster.schema.node import Node
from gryvia_devcluster.schema.values import item_key, kept, old_items
from gryvia_devcluster.types import Json


class RuleSet:
    def __init__(self, root: Node) -> None:
        self._root = root
        self._compiled: dict[int, list[CompiledRule | CompileError]] = {}

    def check(self, obj: Json, old: Json | None) -> list[Cause]:
        out: list[Cause] = []
        self._walk(self._root, obj, old, "", out)
        return out

    def _walk(self, node: Node, value: Any, old: Any, path: str, out: list[Cause]) -> None:
        if value is None:
            return
        if node.rules:
            self._check_rules(node, value, old, path, out)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, each in value.items():
                child = node.field(key)
                if child is not None and child.has_rules:
                    named = key in node.properties
                    place = (f"{path}.{key}" if path else key) if named else f"{path}[{key}]"
                    self._walk(child, each, before.get(key), place, out)
        elif isinstance(value, list) and node.items is not None and node.items.has_rules:
            earlier = old_items(node, old)
            for index, item in enumerate(value):
                self._walk(node.items, item, earlier.get(item_key(node, item)), f"{path}[{index}]", out)

    def _check_rules(self, node: Node, value: Any, old: Any, path: str, out: list[Cause]) -> None:
        compiled = self._compiled.get(id(node))
        if compiled is None:
            compiled = self._compiled[id(node)] = [_compile(node, rule) for rule in node.rules]
        is_kept = old is not None and kept(node, old, value)
        current = earlier = None
        for rule in compiled:
            kind = node.types[0] if node.types else ""
            if isinstance(rule, CompileError):
                out.append(invalid(path, kind, f"rule compile error: compilation failed: {rule}"))
                continue
            if (rule.uses_old and old is None and not rule.optional_old) or (is_kept and not rule.uses_old):
                continue
            if current is None:
                current = self_value(node, value)
                earlier = None if old is None else self_value(node, aligned(node, old, value))
            try:
                holds = rule.program.evaluate(current, earlier)
            except EvaluationError as failed:
                out.append(invalid(path, kind, _failure(str(failed), rule)))
                continue
            if holds is not True:
                out.append(_refusal(rule, value, path, rule.explain(current, earlier)))


def _compile(node: Node, rule: Json) -> CompiledRule | CompileError:
    try:
        return CompiledRule(node, rule)
    except CompileError as failed:
        return failed


def _failure(text: str, rule: CompiledRule) -> str:
    if text.startswith("no such overload"):
        return f"'{text}': call arguments did not match a supported operator, function or macro signature for rule: {rule.label}"
    return f"{text} evaluating rule: {rule.label}"


def _refusal(rule: CompiledRule, value: Any, path: str, detail: str) -> Cause:
    place = f"{path}{rule.field_path}" if path else rule.field_path.removeprefix(".")
    shown = OMIT if isinstance(value, dict | list) else value
    if rule.reason == "FieldValueForbidden":
        return forbidden(place, detail)
    if rule.reason == "FieldValueRequired":
        return required(place, detail)
    if rule.reason == "FieldValueDuplicate":
        return duplicate(place, shown)
    return invalid(place, shown, detail)
