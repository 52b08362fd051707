"""Durations as kubectl shows them (k8s.io/apimachinery's duration.HumanDuration)."""

from __future__ import annotations

from datetime import datetime

from gryvia_devcluster.clock import parse


def human(seconds: float) -> str:
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if hours < 365 * 2 * 24:
        return f"{days}d"
    if hours < 8 * 365 * 24:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age(stamp: str | None, now: datetime) -> str:
    """How long ago `stamp` was; `<unknown>` when there is none."""
    try:
        return human((now - parse(stamp)).total_seconds()) if stamp else "<unknown>"
    except ValueError:
        return "<invalid>"
