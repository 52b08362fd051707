"""A user's regular expressions for logs that are as they are: one group, around the number.

RE2 and not Python's `re`: the expression runs in the service, RE2 is linear in the line, and `re` can be made to hang by one
pattern. It is compiled here only, so that what validation accepts is what the reader uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol, cast

import re2  # type: ignore[import-untyped]  # the package ships no types


class Match(Protocol):
    def group(self, index: int) -> str | None: ...


class Pattern(Protocol):
    """The part of a compiled pattern that is used here."""

    groups: int

    def search(self, text: str) -> Match | None: ...


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Pattern:
    """Raises ValueError with a sentence when it is no RE2 expression with exactly one group."""
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = cast(Pattern, re2.compile(pattern, options))
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise ValueError(f"is not an RE2 regular expression ({reason})") from error
    if compiled.groups != 1:
        raise ValueError(f"has {compiled.groups} groups instead of one; put ( ) around the number, (?: ) elsewhere")
    return compiled


def matched(patterns: Mapping[str, Pattern], line: str) -> dict[str, str]:
    """What each pattern finds on the line, by name."""
    found = {name: match.group(1) for name, pattern in patterns.items() if (match := pattern.search(line))}
    return {name: text for name, text in found.items() if text is not None}
