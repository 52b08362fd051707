"""Values as Go prints them: the real server puts some into its refusals as they are."""

from __future__ import annotations

import json
from typing import Any


def go_text(value: Any) -> str:
    """With %v."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_text(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)


def go_type(value: Any) -> str:
    """With %T, of what a JSON decoder makes of it."""
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    names: dict[type, str] = {str: "string", bool: "bool", int: "int64", float: "float64"}
    return names[type(value)]


def go_syntax(value: Any) -> str:
    """With %#v."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"{go_type(value)}{{{pairs}}}"
    if isinstance(value, list):
        return f"{go_type(value)}{{{', '.join(go_syntax(item) for item in value)}}}"
    if value is None:
        return "interface {}(nil)"
    return json.dumps(value) if isinstance(value, str | bool) else str(value)
