"""Label selectors: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>3`.

The grammar is that of k8s.io/apimachinery's labels package, token by token, because a selector that it refuses has to be refused and
with its words. A selector is parsed once per request and asked for every object, twice per change of a watch, so it is a list of
small functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store.qualified import key_errors, value_errors
from gryvia_devcluster.types import Json

_Test = Callable[[Mapping[str, str]], bool]
_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_OPERATORS = frozenset({"in", "notin", "=", "==", "!=", "<", ">"})
_INTEGER = re.compile(r"[+-]?\d+")
_END = ""


class LabelSelector:
    """The empty selector matches everything."""

    __slots__ = ("_tests", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._tests = _Parser(text).selector()

    def __bool__(self) -> bool:
        return bool(self._tests)

    def matches(self, obj: Json) -> bool:
        if not self._tests:
            return True
        labels = obj["metadata"].get("labels") or {}
        return all(test(labels) for test in self._tests)


class _Unexpected(Exception):
    """Within one requirement."""


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = _TOKEN.findall(text)
        self._place = 0

    def _next(self) -> str:
        """The token in turn; the empty string at the end."""
        return self._tokens[self._place] if self._place < len(self._tokens) else _END

    def _take(self) -> str:
        token = self._next()
        self._place += 1
        return token

    def selector(self) -> list[_Test]:
        tests: list[_Test] = []
        if self._next() == _END:
            return tests
        while True:
            if not _is_word(self._next()) and self._next() != "!":
                raise _refused(f"found '{self._next()}', expected: !, identifier, or 'end of string'")
            try:
                tests.append(self._requirement())
            except _Unexpected as error:
                raise _refused(f"unable to parse requirement: {error}") from error
            after = self._take()
            if after == _END:
                return tests
            if after != ",":
                raise _refused(f"found '{after}', expected: ',' or 'end of string'")
            if not _is_word(self._next()) and self._next() != "!":
                raise _refused(f"found '{self._next()}', expected: identifier after ','")

    def _requirement(self) -> _Test:
        absent = self._next() == "!"
        if absent:
            self._take()
        key = self._take()
        if not _is_word(key):
            raise _Unexpected(f"found '{key}', expected: identifier")
        if errors := key_errors(key):
            raise _Unexpected(f'<nil>: Invalid value: "{key}": {"; ".join(errors)}')
        if absent or self._next() in (",", _END):
            return lambda labels: (key in labels) is not absent
        operator = self._take()
        if operator not in _OPERATORS:
            raise _Unexpected(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if operator in ("in", "notin") else [self._exact_value()]
        for index, value in enumerate(values):
            _check_value(key, operator, index, value)
        return _test(key, operator, values)

    def _values(self) -> list[str]:
        if (token := self._take()) != "(":
            raise _Unexpected(f"found '{token}' expected: '('")
        values: list[str] = []
        expected = "',', ')' or identifier"
        while True:
            token = self._take()
            if token == ")":
                return values or [""]
            if token == ",":
                values.append("")
            elif _is_word(token):
                values.append(token)
                if self._next() not in (",", ")"):
                    raise _Unexpected(f"found '{self._next()}', expected: ',' or ')'")
                if self._take() == ")":
                    return values
                if self._next() == ")":
                    values.append("")
            else:
                raise _Unexpected(f"found '{token}', expected: {expected}")
            expected = "',', or identifier"

    def _exact_value(self) -> str:
        if self._next() in (",", _END):
            return ""
        if not _is_word(token := self._take()):
            raise _Unexpected(f"found '{token}', expected: identifier")
        return token


def _is_word(token: str) -> bool:
    return token != _END and token not in _SYMBOLS


def _check_value(key: str, operator: str, index: int, value: str) -> None:
    if operator in ("<", ">") and not _INTEGER.fullmatch(value):
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise _Unexpected(f'values[{index}]: Invalid value: "{value}": {why}')
    if errors := value_errors(value):
        raise _Unexpected(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(errors)}')


def _test(key: str, operator: str, values: list[str]) -> _Test:
    first, several = values[0], frozenset(values)
    match operator:
        case "in":
            return lambda labels: labels.get(key) in several
        case "notin":
            return lambda labels: labels.get(key) not in several
        case "=" | "==":
            return lambda labels: labels.get(key) == first
        case "!=":
            return lambda labels: labels.get(key) != first
        case _:
            bound = int(first)
            return lambda labels: _is_beyond(labels.get(key), bound, operator == ">")


def _is_beyond(value: str | None, bound: int, greater: bool) -> bool:
    if value is None or not _INTEGER.fullmatch(value):
        return False
    return int(value) > bound if greater else int(value) < bound


def _refused(why: str) -> ApiError:
    return ApiError("BadRequest", why)
