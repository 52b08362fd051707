"""A trouble is said when it begins, not at each try: what is the matter for ten minutes is one line of the log.

An error counts as said by its kind, not by its words: of one outage the words change from try to try (refused, reset, timed out).
Another kind, a refused password after a lost connection, is news.
"""

from __future__ import annotations

from gryvia_common.errors import KnownOutage, Transient


class Trouble:
    """Of one thing that is tried again and again. `last`: the newest error's words, empty when all is well."""

    def __init__(self) -> None:
        self.last = ""
        self._kinds: set[type[BaseException]] = set()

    def is_news(self, error: BaseException) -> bool:
        """Takes note of the error; whether none of its kind has come since it last went well. A known outage is never news."""
        self.last = str(error) or type(error).__name__
        if isinstance(error, KnownOutage):
            return False
        kind = Transient if isinstance(error, OSError | Transient) else type(error)
        known = kind in self._kinds
        self._kinds.add(kind)
        return not known

    def over(self) -> None:
        """It went well."""
        self.last = ""
        self._kinds.clear()
