"""The one deep copy of JSON values: through orjson, several times faster than copy.deepcopy at the sizes objects
have."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import orjson

T = TypeVar("T")


def deep_copy(value: T) -> T:
    try:
        out: Any = orjson.loads(orjson.dumps(value))
    except TypeError:  # an integer beyond 64 bits, or a value from YAML that is no JSON
        return copy.deepcopy(value)
    return out  # type: ignore[no-any-return]  # orjson gives back the types it was given
