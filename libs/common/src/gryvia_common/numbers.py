"""Numbers that arrive as text: metrics, scores, thresholds.

Only a plain finite decimal is a number: an optional sign, digits, an optional fraction, an optional exponent, and nothing
else. `float()` was rejected: it takes `nan`, `inf`, `1_000`, ` 0.5` and digits of other scripts, and a NaN that became
the best value of a study is a known bug elsewhere (kubeflow/katib#2723). What was cut (`0.`, `1e`) is no number either.
"""

from __future__ import annotations

import math
import re

LONGEST = 128
_DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def parse_decimal(text: str) -> float | None:
    """The number, None when the text is not exactly one, is too large for a float, or is longer than 128 characters."""
    if len(text) > LONGEST or _DECIMAL.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None
