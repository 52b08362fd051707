"""The errors of the platform, by what the caller can do about them.

    GryviaError
    ├── Transient   try again later: a timeout, a 5xx, a 429, a lost connection. The outcome of a write is unknown.
    ├── Conflict    somebody else was first: read again, decide again. Never repeat the old body.
    ├── Gone        the thing is not there (any more): 404, or another uid under the same name.
    └── Terminal    it will not work until a person changes something; `message` says what.

The runtime maps each to one reaction (retry with backoff, re-read and retry, forget, report), so that a service never
writes a retry of its own.
"""

from __future__ import annotations


class GryviaError(Exception):
    """The root; never raised itself."""


class Transient(GryviaError):
    """Worth trying again. `retry_after`: seconds the other side asked for, None when it did not say."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class KnownOutage(Transient):
    """Of an outage that has been logged where it was found, once for all who meet it: it is not said again."""


class Conflict(GryviaError):
    """A compare-and-set lost: the object is newer than what was decided on."""


class Gone(GryviaError):
    """The object does not exist (any more)."""


class Terminal(GryviaError):
    """Only a person can mend it. `reason` is a CamelCase word for a condition, the message names the field, the value and the fix."""

    def __init__(self, message: str, *, reason: str = "Invalid") -> None:
        super().__init__(message)
        self.reason = reason
