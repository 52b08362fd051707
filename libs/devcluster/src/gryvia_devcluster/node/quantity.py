"""Kubernetes quantities (`500m`, `1Gi`) as exact numbers.

Source: k8s.io/apimachinery's api/resource. Fractions, because `resourceFieldRef` divides and rounds up.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

_SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000 ** (power + 1)) for power, letter in enumerate("kMGTPE")},
    **{f"{letter}i": Fraction(1024 ** (power + 1)) for power, letter in enumerate("KMGTPE")},
}
_PATTERN = re.compile(r"([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([a-zA-Z]*))")


def parse_quantity(text: str | int | float) -> Fraction:
    """Raises ValueError for what is no quantity."""
    match = _PATTERN.fullmatch(str(text))
    if match is None or (match[3] or "") not in _SUFFIXES:
        raise ValueError(f"{text!r} is not a quantity such as 500m or 2Gi")
    return Fraction(match[1] + (match[2] or "")) * _SUFFIXES[match[3] or ""]


def divide_up(quantity: Fraction, divisor: Fraction) -> int:
    return math.ceil(quantity / divisor)
