"""The API server's usual refusals, with its wording and the details kubectl prints from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import ResourceType

Cause = dict[str, str]


def _details(rt: ResourceType, name: str, kind: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "kind": kind}
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


def modified(rt: ResourceType, name: str) -> ApiError:
    return conflict(
        rt, name, "the object has been modified; please apply your changes to the latest version and try again"
    )


def wrong_uid(rt: ResourceType, name: str, wanted: str, found: str) -> ApiError:
    return conflict(rt, name, f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}")


def forbidden(rt: ResourceType, name: str, why: str, causes: Sequence[Cause] = ()) -> ApiError:
    message = f'{rt.group_resource} "{name}" is forbidden: {why}'
    return ApiError("Forbidden", message, causes=list(causes), details=_details(rt, name, rt.plural))


def invalid(rt: ResourceType, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 with every cause; a cause's message is without the field, as field.Error's body is."""
    cleaned = []
    for cause in causes:
        prefix = f"{cause['field']}: "
        cleaned.append({**cause, "message": cause["message"].removeprefix(prefix)})
    texts = [f"{cause['field']}: {cause['message']}" for cause in cleaned]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    kind = f"{rt.kind}.{rt.group}" if rt.group else rt.kind
    return ApiError(
        "Invalid", f'{kind} "{name}" is invalid: {listed}', causes=cleaned, details=_details(rt, name, rt.kind)
    )


def required(field: str, hint: str = "") -> Cause:
    return {"reason": "FieldValueRequired", "message": "Required value" + (f": {hint}" if hint else ""), "field": field}


def invalid_value(field: str, value: Any, why: str) -> Cause:
    shown = f'"{value}"' if isinstance(value, str) else ("null" if value is None else _go(value))
    return {"reason": "FieldValueInvalid", "message": f"Invalid value: {shown}: {why}", "field": field}


def unsupported(field: str, value: Any, allowed: Sequence[str]) -> Cause:
    listed = ", ".join(f'"{item}"' for item in allowed)
    return {
        "reason": "FieldValueNotSupported",
        "message": f'Unsupported value: "{value}": supported values: {listed}',
        "field": field,
    }


def forbidden_field(field: str, why: str) -> Cause:
    return {"reason": "FieldValueForbidden", "message": f"Forbidden: {why}", "field": field}


def _go(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return "null" if not value else str(value)
    return str(value)
