"""What a CRD's schema contains beyond structure: defaults that have to fit it, and CEL rules that have to compile."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from gryvia_devcluster.patch.copying import deep_copy
from gryvia_devcluster.schema import causes
from gryvia_devcluster.schema.causes import Cause
from gryvia_devcluster.schema.cel.compiled import CompiledRule
from gryvia_devcluster.schema.cel.engine import CompileError
from gryvia_devcluster.schema.cel.static import check_message_types, check_rule_types
from gryvia_devcluster.schema.node import META_FIELDS, Node, compile_schema
from gryvia_devcluster.schema.structural import prune_value
from gryvia_devcluster.schema.values import check_value
from gryvia_devcluster.types import Json

REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a schema: below which list old values have no counterpart; in which field of ObjectMeta and its kin no
    default is allowed; inside a map defaults are not checked."""

    at_root: bool = False
    uncorrelated: str | None = None
    meta_field: str = ""
    in_map: bool = False


def check_contents(schema: Json, root: str, out: list[Cause]) -> None:
    """Appends what is wrong; `root` is the path of the whole schema."""
    _check(schema, root, Place(at_root=True), out)


def _check(schema: Json, path: str, place: Place, out: list[Cause]) -> None:
    if schema.get("default") is not None and not place.in_map:
        _check_default(schema, path, place, out)
    _check_rules(schema, path, place, out)
    below = replace(place, at_root=False)
    for name, sub in (schema.get("properties") or {}).items():
        meta_field = name if place.at_root and name in META_FIELDS else place.meta_field
        _check(sub, f"{path}.properties[{name}]", replace(below, meta_field=meta_field), out)
    if isinstance(schema.get("additionalProperties"), dict):
        _check(schema["additionalProperties"], f"{path}.additionalProperties", replace(below, in_map=True), out)
    if isinstance(schema.get("items"), dict):
        if schema.get("x-kubernetes-list-type") != "map":
            below = replace(below, uncorrelated=path)
        _check(schema["items"], f"{path}.items", below, out)


def _check_default(schema: Json, path: str, where: Place, out: list[Cause]) -> None:
    place = f"{path}.default"
    if where.at_root:
        out.extend(causes.required(f"{place}.{name}") for name in ("apiVersion", "kind"))
        return
    if where.meta_field:
        out.append(causes.forbidden(place, f"must not be set in top-level {where.meta_field}"))
        return
    node = compile_schema(schema)
    value = deep_copy(schema["default"])
    if prune_value(node, value):
        out.append(causes.invalid(place, schema["default"], "must not have unknown fields"))
    found: list[Cause] = []
    check_value(node, value, None, "", found)
    out.extend(
        {**each, "field": place if each["field"] == causes.ROOT else f"{place}.{each['field']}"} for each in found
    )


def _check_rules(schema: Json, path: str, where: Place, out: list[Cause]) -> None:
    rules = schema.get("x-kubernetes-validations")
    if not rules:
        return
    node = compile_schema(schema)
    node.embedded = node.embedded or where.at_root
    for index, rule in enumerate(rules):
        place = f"{path}.x-kubernetes-validations[{index}]"
        if not str(rule.get("rule", "")).strip():
            out.append(causes.required(f"{place}.rule", "rule is not specified"))
            continue
        _check_words(node, rule, place, out)
        uses_old = _check_expressions(node, rule, place, out)
        if uses_old and where.uncorrelated is not None:
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {where.uncorrelated}"
            out.append(causes.invalid(f"{place}.rule", rule["rule"], text))
        if rule.get("optionalOldSelf") is not None and uses_old is False:
            text = "may not be set if oldSelf is not used in rule"
            out.append(causes.invalid(f"{place}.optionalOldSelf", rule["optionalOldSelf"], text))


def _check_words(node: Node, rule: Json, place: str, out: list[Cause]) -> None:
    """Everything of a rule that is not CEL."""
    message, field_path = rule.get("message", ""), rule.get("fieldPath", "")
    if message and not message.strip():
        out.append(causes.invalid(f"{place}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip():
        out.append(causes.invalid(f"{place}.message", message, "must not contain line breaks"))
    if "\n" in rule["rule"] and not message:
        out.append(causes.required(f"{place}.message", "message must be specified if rule contains line breaks"))
    if field_path and not field_path.strip():
        out.append(causes.invalid(f"{place}.fieldPath", field_path, "must be non-empty if specified"))
    if field_path and not _is_path(node, field_path):
        out.append(causes.invalid(f"{place}.fieldPath", field_path, "must be a valid path"))
    if rule.get("reason") is not None and rule["reason"] not in REASONS:
        out.append(causes.not_supported(f"{place}.reason", rule["reason"], REASONS))


def _check_expressions(node: Node, rule: Json, place: str, out: list[Cause]) -> bool | None:
    """Whether the rule uses oldSelf, None where it cannot be compiled."""
    explanation = rule.get("messageExpression", "")
    if explanation and not explanation.strip():
        text = "messageExpression must be non-empty if specified"
        out.append(causes.required(f"{place}.messageExpression", text))
    try:
        compiled = CompiledRule(node, {**rule, "messageExpression": ""})
        check_rule_types(node, rule)
    except CompileError as failed:
        text = f"compilation failed: {failed}" if "ERROR" in str(failed) else str(failed)
        out.append(causes.invalid(f"{place}.rule", _internal(rule), text))
        return None
    if explanation.strip():
        try:
            CompiledRule(node, rule)
            check_message_types(node, rule)
        except CompileError as failed:
            text = f"messageExpression compilation failed: {failed}" if "ERROR" in str(failed) else str(failed)
            out.append(causes.invalid(f"{place}.messageExpression", _internal(rule), text))
    return compiled.uses_old


_PART = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")


def _is_path(node: Node, text: str) -> bool:
    """A path of `.field` and `['key']` from this position, through fields and maps that the schema declares."""
    current: Node | None = node
    position = 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or current is None:
            return False
        current = current.field(part[1] if part[1] is not None else part[2])
        position = part.end()
    return current is not None


def _internal(rule: Json) -> Json:
    """A rule as the real server shows it: with the Go names of its internal type."""
    return {
        "Rule": rule["rule"],
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
