"""Label and field selectors: parsed once per request, matched against every object of a list or watch.

The grammar is that of k8s.io/apimachinery's labels and fields packages, set-based requirements included. A selector is a
compiled object with `matches`, because a watch asks it twice per change (before and after).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Json

_Test = Callable[[Mapping[str, str]], bool]
_SPLIT = re.compile(r",(?![^(]*\))")
_SET = re.compile(r"^(?P<key>[^\s!=()]+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^\s!=()<>]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s()=!]*)$")
_ORDER = re.compile(r"^(?P<key>[^\s!=()<>]+)\s*(?P<op><|>)\s*(?P<value>-?\d+)$")
_EXISTS = re.compile(r"^(?P<not>!?)\s*(?P<key>[^\s!=(),<>]+)$")
_FORMS = (_SET, _EQUAL, _ORDER, _EXISTS)
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class LabelSelector:
    """`a=b,c!=d,e in (f,g),h notin (i),j,!k,l>3`; the empty selector matches everything."""

    __slots__ = ("_tests", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._tests = [_label_test(part.strip()) for part in _SPLIT.split(text)] if text.strip() else []

    def __bool__(self) -> bool:
        return bool(self._tests)

    def matches(self, obj: Json) -> bool:
        if not self._tests:
            return True
        labels = obj["metadata"].get("labels") or {}
        return all(test(labels) for test in self._tests)


def _label_test(part: str) -> _Test:
    key = next((match["key"] for form in _FORMS if (match := form.match(part))), "")
    if key and not _KEY.fullmatch(key):
        raise ApiError("BadRequest", f"unable to parse requirement: {key!r} is not a label key")
    if match := _SET.match(part):
        key, values = match["key"], {value.strip() for value in match["values"].split(",")}
        if match["op"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUAL.match(part):
        key, value = match["key"], match["value"]
        if match["op"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := _ORDER.match(part):
        key, bound, greater = match["key"], int(match["value"]), match["op"] == ">"
        return lambda labels: _is_beyond(labels.get(key), bound, greater)
    if match := _EXISTS.match(part):
        key, wanted = match["key"], not match["not"]
        return lambda labels: (key in labels) is wanted
    raise ApiError("BadRequest", f"unable to parse requirement: {part!r} is not a label selector")


def _is_beyond(value: str | None, bound: int, greater: bool) -> bool:
    if value is None or not re.fullmatch(r"-?\d+", value):
        return False
    return int(value) > bound if greater else int(value) < bound


class FieldSelector:
    """`a.b=c,d!=e` over the labels that `supported` allows; a field that is absent equals the empty string."""

    __slots__ = ("_terms", "text")

    def __init__(self, text: str, supported: Callable[[str], bool]) -> None:
        self.text = text
        self._terms: list[tuple[tuple[str, ...], bool, str]] = []
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            match = re.match(r"^([^!=]+)(==|=|!=)(.*)$", part)
            if not match:
                raise ApiError("BadRequest", f"invalid field selector: {part!r}; can't understand it")
            path = match[1].strip()
            if not supported(path):
                raise ApiError("BadRequest", f"field label not supported: {path}")
            self._terms.append((tuple(path.split(".")), match[2] != "!=", match[3].strip()))

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
