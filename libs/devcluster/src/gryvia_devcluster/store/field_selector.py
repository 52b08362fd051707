"""Field selectors: `a.b=c,d!=e` over the fields of a type that can be selected by."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Json

_TERM = re.compile(r"^([^!=]*)(==|=|!=)(.*)$")


class FieldSelector:
    """`refusal` says why one cannot select by a field, "" where one can; a field that is absent equals the empty string."""

    __slots__ = ("_terms", "text")

    def __init__(self, text: str, refusal: Callable[[str], str]) -> None:
        self.text = text
        self._terms: list[tuple[tuple[str, ...], bool, str]] = []
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            match = _TERM.match(part)
            if not match:
                raise ApiError("BadRequest", f"invalid selector: '{text}'; can't understand '{part}'")
            path, value = match[1].strip(), match[3].strip()
            if not path and not value:
                continue
            if why := refusal(path):
                raise ApiError("BadRequest", why)
            self._terms.append((tuple(path.split(".")), match[2] != "!=", value))

    def __bool__(self) -> bool:
        return bool(self._terms)

    def name(self) -> str | None:
        """The value of `metadata.name=…`, for which a list is a lookup."""
        return next((value for path, equal, value in self._terms if equal and path == ("metadata", "name")), None)

    def matches(self, obj: Json) -> bool:
        return all((_read(obj, path) == value) is equal for path, equal, value in self._terms)


def _read(obj: Json, path: tuple[str, ...]) -> str:
    value: Any = obj
    for step in path:
        if not isinstance(value, dict):
            return ""
        value = value.get(step)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
