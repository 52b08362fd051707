"""Static types of a rule, for the check of a CRD: the real server refuses `self.replicas > 'a'` when the CRD is
created.

Field paths that start at `self` are replaced by variables of the schema's types, as long as the text they stand for, so
that the columns of errors stay right. The result is only type-checked, never evaluated: where a rule is evaluated, a
field that is not there has to be an error, which a variable is not.
"""

from __future__ import annotations

import re

from gryvia_devcluster.schema.cel.engine import OLD_VALUES, CompileError, check_types, pattern_error
from gryvia_devcluster.schema.cel.source import INSIDE_HAS, TOKENS, error_at, step
from gryvia_devcluster.schema.node import Node
from gryvia_devcluster.types import Json

# cel-go compares integers with doubles, cel-cpp's type checker does not know it
_MIXED_ORDER = re.compile(r"found no matching overload for '_[<>]=?_' applied to '\((int|double), (int|double)\)'")
_SELECT = re.compile(r"expression of type '(\w+)' cannot be the operand of a select operation")
_MATCHES = re.compile(r"\.\s*matches(\()\s*r?'((?:[^'\\]|\\.)*)'\s*\)")
_FORMATS = {"byte": "bytes", "date": "timestamp", "datetime": "timestamp", "duration": "duration"}


def check_rule_types(node: Node, rule: Json) -> None:
    """Raises CompileError with the real server's words."""
    text = rule["rule"].strip()
    for found in _MATCHES.finditer(text):
        if "\\" not in found[2] and pattern_error(found[2]) is not None:
            raise CompileError(error_at(text, found.start(2) - 1, "invalid matches argument"))
    if rule.get("optionalOldSelf"):
        return
    if _result(text, node) not in ("BOOL", None):
        raise CompileError("cel expression must evaluate to a bool")


def check_message_types(node: Node, rule: Json) -> None:
    """The same for the messageExpression."""
    if rule.get("optionalOldSelf"):
        return
    if _result(rule["messageExpression"], node) not in ("STRING", "DYN", None):
        raise CompileError("messageExpression must evaluate to a string")


def _result(text: str, node: Node) -> str | None:
    """The type of an expression, None where this check knows less than the engine."""
    source, variables = _with_variables(text, node)
    try:
        return check_types(source, variables)
    except CompileError as failed:
        message = _SELECT.sub(r"type '\1' does not support field selection", str(failed))
        if _MIXED_ORDER.search(message):
            return None
        shown = message.split("\n | ")
        if len(shown) != 3 or "\n" in text:
            return None
        raise CompileError("\n | ".join([shown[0], text, shown[2]])) from failed


def _with_variables(text: str, node: Node) -> tuple[str, dict[str, str]]:
    variables = {"self": _field_type(node), "oldSelf": _field_type(node), OLD_VALUES: "list"}
    out: list[str] = []
    names: dict[str, str] = {}
    position = 0
    for token in TOKENS.finditer(text):
        path = token["path"]
        if not path or "?" in path or INSIDE_HAS.search(text[: token.start()]):
            continue
        kind, length = _typed_prefix(path, node)
        if kind is None:
            continue
        chain = token["root"] + path[:length]
        name = names.setdefault(chain, f"v{len(names):0{len(chain) - 1}d}")
        variables[name] = kind
        out += [text[position : token.start()], name]
        position = token.start() + len(chain)
    out.append(text[position:])
    return "".join(out), variables


def _typed_prefix(path: str, node: Node) -> tuple[str | None, int]:
    """The type and length of the longest part of a path that a schema declares, if that is no object."""
    current, kind, length = node, "dyn", 0
    for part in re.finditer(r"\s*\.\s*(\w+)", path):
        following = step(current, part[1], is_root=current is node)
        if following is None or not following.raw:
            break
        current, length = following, part.end()
        kind = _field_type(current)
        if current.types != ("object",):
            break
    return (None if kind == "dyn" else kind), length


def _field_type(node: Node) -> str:
    if node.types == ("string",):
        return _FORMATS.get(node.format.replace("-", ""), "string")
    if node.types == ("number",):
        return "double"
    if node.types == ("array",):
        return f"list<{_field_type(node.items)}>" if node.items is not None else "list<dyn>"
    if node.types == ("object",):
        return f"map<{_field_type(node.additional)}>" if isinstance(node.additional, Node) else "dyn"
    return {"integer": "int", "boolean": "bool"}.get(node.types[0], "dyn") if len(node.types) == 1 else "dyn"
