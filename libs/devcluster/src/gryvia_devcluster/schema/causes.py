"""Status causes in the words of k8s.io/apimachinery's field errors and kube-openapi's validation messages.

A cause's message is what the real server calls the error body (no field name); a Status message is made of `field:
body`.
"""

from __future__ import annotations

from typing import Any

import orjson

Cause = dict[str, str]

ROOT = "<nil>"
BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)


class Omit:
    """The value of an object or array is not repeated in the message."""


OMIT = Omit()


def render(value: Any) -> str:
    """A value as the field package prints it: text quoted, numbers plain, anything else as JSON."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value)
    text = orjson.dumps(value).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def quote(text: str) -> str:
    """Go's %q, for the characters that occur."""
    return orjson.dumps(text).decode().replace("\x7f", "\\x7f")


def number(value: float) -> str:
    """Go's %v of a number: no fraction that is zero, an exponent for what is no int64 and below 1e-4."""
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return str(value)
    value = float(value)
    if value.is_integer() and abs(value) < 2**63:
        return str(int(value))
    text = repr(value)
    mantissa, mark, exponent = text.partition("e")
    if not mark:
        return text
    power = int(exponent)
    if -4 <= power < 0:
        return f"{value:f}".rstrip("0")
    return f"{mantissa.removesuffix('.0')}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _cause(reason: str, field: str, title: str, value: Any, detail: str) -> Cause:
    text = title if value is OMIT else f"{title}: {render(value)}"
    return {"reason": reason, "message": f"{text}: {detail}" if detail else text, "field": field or ROOT}


def invalid(field: str, value: Any, detail: str) -> Cause:
    return _cause("FieldValueInvalid", field, "Invalid value", value, detail)


def type_invalid(field: str, value: Any, detail: str) -> Cause:
    return _cause("FieldValueTypeInvalid", field, "Invalid value", value, detail)


def required(field: str, detail: str = "") -> Cause:
    return _cause("FieldValueRequired", field, "Required value", OMIT, detail)


def forbidden(field: str, detail: str) -> Cause:
    return _cause("FieldValueForbidden", field, "Forbidden", OMIT, detail)


def duplicate(field: str, value: Any) -> Cause:
    return _cause("FieldValueDuplicate", field, "Duplicate value", value, "")


def not_supported(field: str, value: Any, allowed: list[Any]) -> Cause:
    texts = [each if isinstance(each, str) else orjson.dumps(each).decode() for each in allowed]
    detail = "supported values: " + ", ".join(quote(text) for text in texts) if texts else ""
    return _cause("FieldValueNotSupported", field, "Unsupported value", value, detail)


def too_long(field: str, limit: int) -> Cause:
    detail = f"may not be more than {limit} byte{'' if limit == 1 else 's'}"
    return _cause("FieldValueTooLong", field, "Too long", OMIT, detail)


def too_many(field: str, actual: int, limit: int) -> Cause:
    detail = f"must have at most {limit} item{'' if limit == 1 else 's'}"
    return _cause("FieldValueTooMany", field, "Too many", actual, detail)
