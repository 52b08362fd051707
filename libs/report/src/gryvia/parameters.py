"""The hyperparameters of a trial, which the tuner hands over as HP_<name> in the environment."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

PREFIX = "HP_"


def parameters(environ: Mapping[str, str] | None = None) -> dict[str, int | float | str]:
    """Name to value: int or float where the text is one, else the text. Empty outside of a trial."""
    source = os.environ if environ is None else environ
    return {name[len(PREFIX) :]: _typed(text) for name, text in source.items() if name.startswith(PREFIX)}


def _typed(text: str) -> int | float | str:
    if "_" in text or text != text.strip():
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
