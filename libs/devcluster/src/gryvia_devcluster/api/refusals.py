"""The API server's usual refusals, with its wording and the details kubectl prints from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Json, ResourceType

Cause = dict[str, str]


def _details(rt: ResourceType, name: str, kind: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "kind": kind} if name else {"kind": kind}
    if rt.group:
        details["group"] = rt.group
    return details


def not_found(rt: ResourceType, name: str) -> ApiError:
    return ApiError("NotFound", f'{rt.group_resource} "{name}" not found', details=_details(rt, name, rt.plural))


def already_exists(rt: ResourceType, name: str) -> ApiError:
    details = _details(rt, name, rt.plural)
    return ApiError("AlreadyExists", f'{rt.group_resource} "{name}" already exists', details=details)


def conflict(rt: ResourceType, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {rt.group_resource} "{name}": {why}'
    return ApiError("Conflict", message, details=_details(rt, name, rt.plural))


def being_deleted(rt: ResourceType, name: str) -> ApiError:
    """Its name is taken until the last finalizer is gone."""
    error = already_exists(rt, name)
    error.message = f"object is being deleted: {error.message}"
    return error


def modified(rt: ResourceType, name: str) -> ApiError:
    return conflict(
        rt, name, "the object has been modified; please apply your changes to the latest version and try again"
    )


def wrong_uid(rt: ResourceType, name: str, wanted: str, found: str) -> ApiError:
    return conflict(rt, name, f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}")


def wrong_precondition(rt: ResourceType, name: str, what: str, wanted: str, found: str, why: str) -> ApiError:
    """Of a deletion, where the real server names the kind and not the resource."""
    kind = f"{rt.kind}.{rt.group}" if rt.group else rt.kind
    text = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). {why}"
    message = f'Operation cannot be fulfilled on {kind} "{name}": {text}'
    return ApiError("Conflict", message, details=_details(rt, name, rt.kind))


def invalid_options(kind: str, causes: Sequence[Cause]) -> ApiError:
    """What a request says beside its object: `kind` is PatchOptions, ListOptions, and so on."""
    error = _invalid(f"{kind}.meta.k8s.io", "", causes)
    error.details = {"group": "meta.k8s.io", "kind": kind}
    return error


def forbidden(rt: ResourceType, name: str, why: str, causes: Sequence[Cause] = ()) -> ApiError:
    message = f'{rt.group_resource} "{name}" is forbidden: {why}'
    return ApiError("Forbidden", message, causes=list(causes), details=_details(rt, name, rt.plural))


def invalid(rt: ResourceType, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 with every cause; a cause's message is without the field, as field.Error's body is."""
    error = _invalid(f"{rt.kind}.{rt.group}" if rt.group else rt.kind, name, causes)
    error.details = _details(rt, name, rt.kind)
    return error


def wrong_kind(rt: ResourceType, name: str, kind: str) -> ApiError:
    """An object of another kind than its place."""
    if rt.schema is None:
        text = f"converting ({rt.version}.{kind}) to ({rt.group.partition('.')[0] or 'core'}.{rt.kind}): unknown conversion"
        return ApiError("BadRequest", f'{kind} in version "{rt.version}" cannot be handled as a {rt.kind}: {text}')
    error = _invalid(f"{kind}.{rt.group}", name, [invalid_value("kind", kind, f"must be {rt.kind}")])
    error.details = _details(rt, name, kind)
    return error


def _invalid(kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    cleaned = []
    for cause in causes:
        prefix = f"{cause['field']}: "
        cleaned.append({**cause, "message": cause["message"].removeprefix(prefix)})
    texts = list(dict.fromkeys(f"{cause['field']}: {cause['message']}" for cause in cleaned))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return ApiError("Invalid", f'{kind} "{name}" is invalid: {listed}', causes=cleaned)


def required(field: str, hint: str = "") -> Cause:
    return {"reason": "FieldValueRequired", "message": "Required value" + (f": {hint}" if hint else ""), "field": field}


def invalid_value(field: str, value: Any, why: str) -> Cause:
    shown = f'"{value}"' if isinstance(value, str) else ("null" if value is None else _go(value))
    return {"reason": "FieldValueInvalid", "message": f"Invalid value: {shown}: {why}", "field": field}


def unsupported(field: str, value: Any, allowed: Sequence[str]) -> Cause:
    listed = ", ".join(f'"{item}"' for item in allowed)
    shown = json.dumps(value)
    return {
        "reason": "FieldValueNotSupported",
        "message": f"Unsupported value: {shown}: supported values: {listed}",
        "field": field,
    }


def forbidden_field(field: str, why: str) -> Cause:
    return {"reason": "FieldValueForbidden", "message": f"Forbidden: {why}", "field": field}


def immutable(old: Json | None, new: Json, *fields: str) -> list[Cause]:
    """Fields of the spec that an update may not change."""
    if old is None:
        return []
    before, after = old.get("spec") or {}, new.get("spec") or {}
    return [
        invalid_value(f"spec.{field}", after.get(field), "field is immutable")
        for field in fields
        if before.get(field) != after.get(field)
    ]


def negative(spec: Json, *fields: str) -> list[Cause]:
    """Numbers of the spec that have to be 0 or more."""
    return [
        invalid_value(f"spec.{field}", spec[field], "must be greater than or equal to 0")
        for field in fields
        if isinstance(spec.get(field), int) and spec[field] < 0
    ]


def _go(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":")) if value else "null"
    return str(value)
