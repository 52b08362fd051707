"""What a CRD's schema contains beyond structure: defaults that have to fit it, and CEL rules that have to compile."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gryvia_devcluster.patch.copying import deep_copy
from gryvia_devcluster.schema import causes
from gryvia_devcluster.schema.causes import Cause
from gryvia_devcluster.schema.cel.compiled import CompiledRule
from gryvia_devcluster.schema.cel.engine import CompileError
from gryvia_devcluster.schema.cel.static import check_rule_types
from gryvia_devcluster.schema.node import META_FIELDS, compile_schema
from gryvia_devcluster.schema.structural import prune_value
from gryvia_devcluster.schema.values import check_value
from gryvia_devcluster.types import Json

REASONS = ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a schema: old values can be correlated; inside metadata no default is allowed; inside a map none is checked."""

    at_root: bool = False
    correlated: bool = True
    in_metadata: bool = False
    in_map: bool = False


def check_contents(schema: Json, root: str, out: list[Cause]) -> None:
    """Appends what is wrong; `root` is the path of the whole schema."""
    _check(schema, root, Place(at_root=True), out)


def _check(schema: Json, path: str, place: Place, out: list[Cause]) -> None:
    if schema.get("default") is not None and not place.in_map:
        _check_default(schema, path, place, out)
    _check_rules(schema, path, place, out)
    below = replace(place, at_root=False)
    by_key = replace(below, correlated=place.correlated and schema.get("x-kubernetes-map-type") != "atomic")
    for name, sub in (schema.get("properties") or {}).items():
        in_metadata = place.in_metadata or (place.at_root and name in META_FIELDS)
        _check(sub, f"{path}.properties[{name}]", replace(by_key, in_metadata=in_metadata), out)
    if isinstance(schema.get("additionalProperties"), dict):
        _check(schema["additionalProperties"], f"{path}.additionalProperties", replace(by_key, in_map=True), out)
    if isinstance(schema.get("items"), dict):
        keyed = schema.get("x-kubernetes-list-type") == "map"
        _check(schema["items"], f"{path}.items", replace(below, correlated=place.correlated and keyed), out)


def _check_default(schema: Json, path: str, where: Place, out: list[Cause]) -> None:
    place = f"{path}.default"
    if where.at_root or where.in_metadata:
        text = "must not be set" if where.at_root else "must not be set in top-level metadata"
        out.append(causes.forbidden(place, text))
        return
    node = compile_schema(schema)
    value = deep_copy(schema["default"])
    unknown = prune_value(node, value)
    if unknown:
        text = f"must not have unknown fields: {', '.join(unknown)}"
        out.append(causes.invalid(place, schema["default"], text))
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
        if "\n" in rule.get("message", ""):
            out.append(causes.invalid(f"{place}.message", rule["message"], "message must not contain line breaks"))
        if "\n" in rule["rule"] and not rule.get("message"):
            out.append(causes.required(f"{place}.message", "message must be specified if rule contains line breaks"))
        _check_reason(rule, place, out)
        try:
            compiled = CompiledRule(node, rule)
            check_rule_types(node, rule)
        except CompileError as failed:
            text = str(failed)
            out.append(
                causes.invalid(
                    f"{place}.rule", _internal(rule), f"compilation failed: {text}" if "ERROR" in text else text
                )
            )
            continue
        if compiled.uses_old and not where.correlated:
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {path}"
            out.append(causes.invalid(f"{place}.rule", rule["rule"], text))
        if rule.get("optionalOldSelf") is not None and not compiled.uses_old:
            text = "may not be set if oldSelf is not used in rule"
            out.append(causes.invalid(f"{place}.optionalOldSelf", rule["optionalOldSelf"], text))


def _check_reason(rule: Json, place: str, out: list[Cause]) -> None:
    if rule.get("reason") is not None and rule["reason"] not in REASONS:
        out.append(causes.not_supported(f"{place}.reason", rule["reason"], REASONS))


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
