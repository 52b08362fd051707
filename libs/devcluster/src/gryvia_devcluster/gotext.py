"""Values as Go prints them: the real server puts some into its refusals as they are."""

from __future__ import annotations

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
