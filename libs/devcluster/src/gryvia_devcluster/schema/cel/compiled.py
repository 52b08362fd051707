"""One rule of a schema position, ready to evaluate, and the value that it sees as `self`."""

from __future__ import annotations

import base64
from typing import Any

from gryvia_devcluster.schema.cel.engine import CompileError, EvaluationError, compile_expression
from gryvia_devcluster.schema.cel.source import escape, prepare
from gryvia_devcluster.schema.node import Node
from gryvia_devcluster.schema.values import item_key
from gryvia_devcluster.types import Json

MESSAGE_LIMIT = 5120


class CompiledRule:
    """Raises CompileError where the rule or its messageExpression is not CEL, or of the wrong type."""

    __slots__ = ("_explanation", "_message", "field_path", "label", "optional_old", "program", "reason", "uses_old")

    def __init__(self, node: Node, rule: Json) -> None:
        text = rule.get("rule", "").strip()
        self.optional_old = bool(rule.get("optionalOldSelf"))
        source = prepare(text, node, optional_old=self.optional_old)
        self.uses_old = source.uses_old
        self.program = compile_expression(source.text)
        if self.program.result not in ("BOOL", "DYN"):
            raise CompileError("cel expression must evaluate to a bool")
        self._message = rule.get("message", "").strip()
        self.label = self._message or text
        self.reason = rule.get("reason", "FieldValueInvalid")
        self.field_path = rule.get("fieldPath", "")
        self._explanation = None
        if rule.get("messageExpression"):
            explanation = prepare(rule["messageExpression"], node, optional_old=self.optional_old)
            self._explanation = compile_expression(explanation.text)
            if self._explanation.result not in ("STRING", "DYN"):
                raise CompileError("messageExpression must evaluate to a string")

    def explain(self, value: Any, old: Any) -> str:
        """messageExpression, or where it fails or is not one line of text the message, or the rule itself."""
        if self._explanation is not None:
            try:
                text = self._explanation.evaluate(value, old)
            except EvaluationError:
                text = None
            if isinstance(text, str) and text.strip() and "\n" not in text and len(text) <= MESSAGE_LIMIT:
                return text
        return self._message or f"failed rule: {self.label}"


def self_value(node: Node, value: Any) -> Any:
    """A value as CEL sees it: numbers by their declared type, bytes decoded, names escaped."""
    if isinstance(value, dict):
        out = {}
        for key, each in value.items():
            if key in node.properties:
                name = escape(key)
                if name is not None:
                    out[name] = self_value(node.properties[key], each)
            else:
                out[key] = self_value(node.additional, each) if isinstance(node.additional, Node) else each
        return out
    if isinstance(value, list):
        return [self_value(node.items, item) for item in value] if node.items is not None else value
    if isinstance(value, str):
        return base64.b64decode(value) if node.format == "byte" else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if node.types == ("number",):
        return float(value)
    return int(value) if node.types == ("integer",) else value


def aligned(node: Node, old: Any, value: Any) -> Any:
    """An old value whose sets and keyed lists follow the order of the new one: order is no difference between those,
    and the engine, which knows only lists, compares them in order."""
    if isinstance(old, dict) and isinstance(value, dict):
        out = {}
        for key, each in old.items():
            child = node.field(key)
            out[key] = each if child is None or key not in value else aligned(child, each, value[key])
        return out
    if not isinstance(old, list) or not isinstance(value, list) or node.list_type not in ("set", "map"):
        return old
    rest = list(old)
    first = []
    for item in value:
        key = item_key(node, item)
        match = next((each for each in rest if each == item or (key is not None and item_key(node, each) == key)), None)
        if match is not None:
            rest.remove(match)
            first.append(match)
    return first + rest
