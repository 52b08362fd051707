"""What a CRD's schema contains beyond structure: defaults that have to fit it, and CEL rules that have to compile."""

from __future__ import annotations

from gryvia_devcluster.patch.copying import deep_copy
from gryvia_devcluster.schema import causes
from gryvia_devcluster.schema.causes import Cause
from gryvia_devcluster.schema.cel.compiled import CompiledRule
from gryvia_devcluster.schema.cel.engine import CompileError
from gryvia_devcluster.schema.node import META_FIELDS, compile_schema
from gryvia_devcluster.schema.structural import prune_value
from gryvia_devcluster.schema.values import check_value
from gryvia_devcluster.types import Json

REASONS = ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"]


def check_contents(schema: Json, root: str, out: list[Cause]) -> None:
    """Appends what is wrong; `root` is the path of the whole schema."""
    _check(schema, root, root, out, correlated=True, in_metadata=False)


def _check(schema: Json, path: str, root: str, out: list[Cause], *, correlated: bool, in_metadata: bool) -> None:
    """Defaults that fit their own schema, and rules that compile."""
    at_root = path == root
    if schema.get("default") is not None:
        _check_default(schema, path, out, at_root=at_root, in_metadata=in_metadata)
    _check_rules(schema, path, out, correlated=correlated, at_root=at_root)
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    for name, sub in (schema.get("properties") or {}).items():
        meta = (at_root or bool(schema.get("x-kubernetes-embedded-resource"))) and name in META_FIELDS
        place = f"{path}.properties[{name}]"
        _check(
            sub, place, root, out, correlated=correlated and not atomic, in_metadata=in_metadata or (at_root and meta)
        )
    if isinstance(schema.get("additionalProperties"), dict):
        place = f"{path}.additionalProperties"
        _check(
            schema["additionalProperties"],
            place,
            root,
            out,
            correlated=correlated and not atomic,
            in_metadata=in_metadata,
        )
    if isinstance(schema.get("items"), dict):
        keyed = schema.get("x-kubernetes-list-type") == "map"
        _check(schema["items"], f"{path}.items", root, out, correlated=correlated and keyed, in_metadata=in_metadata)


def _check_default(schema: Json, path: str, out: list[Cause], *, at_root: bool, in_metadata: bool) -> None:
    place = f"{path}.default"
    if at_root or in_metadata:
        out.append(causes.forbidden(place, "must not be set" if at_root else "must not be set in top-level metadata"))
        return
    node = compile_schema(schema)
    value = deep_copy(schema["default"])
    unknown = prune_value(node, value)
    if unknown:
        text = f"must not have unknown fields: {', '.join(unknown)}"
        out.append(causes.invalid(place, schema["default"], text))
    check_value(node, value, None, place, out)


def _check_rules(schema: Json, path: str, out: list[Cause], *, correlated: bool, at_root: bool) -> None:
    rules = schema.get("x-kubernetes-validations")
    if not rules:
        return
    node = compile_schema(schema)
    node.embedded = node.embedded or at_root
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
        except CompileError as failed:
            text = str(failed)
            out.append(
                causes.invalid(f"{place}.rule", rule, f"compilation failed: {text}" if "ERROR" in text else text)
            )
            continue
        if compiled.uses_old and not correlated:
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {path}"
            out.append(causes.invalid(f"{place}.rule", rule["rule"], text))
        if rule.get("optionalOldSelf") is not None and not compiled.uses_old:
            text = "may not be set if oldSelf is not used in rule"
            out.append(causes.invalid(f"{place}.optionalOldSelf", rule["optionalOldSelf"], text))


def _check_reason(rule: Json, place: str, out: list[Cause]) -> None:
    if rule.get("reason") is not None and rule["reason"] not in REASONS:
        out.append(causes.not_supported(f"{place}.reason", rule["reason"], REASONS))
