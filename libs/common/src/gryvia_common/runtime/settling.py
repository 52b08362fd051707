"""Tells an object that gets on, pass after pass, from one that goes round in a circle.

A pass that changed something is followed by another at once, so a decide function that never comes to rest would write without an
end. But a long chain of steps that need nobody else is many changing passes in a row, and rightly so. What tells them apart is the
status: who gets on writes one that was not there before, who goes round writes the same ones again. (Rejected: a bound on passes
alone. A workflow of a hundred light steps met it and was slowed down like a failure.) A bound on passes remains for a status that is
new every time and leads nowhere, a counter for instance.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from gryvia_common.kube.objects import Json

REPEATS = 25
PASSES = 1000
LONGEST_WAIT = 300.0


@dataclass(slots=True)
class Settling:
    """Of one object, since the last news of it."""

    passes: int = 0
    repeats: int = 0
    seen: set[int] = field(default_factory=set)

    def changed(self, status: Json | None) -> float:
        """A pass changed something and decided on this status: seconds to wait before the next, 0 for at once."""
        self.passes += 1
        digest = hash(orjson.dumps(status))
        if digest in self.seen:
            self.repeats += 1
        self.seen.add(digest)
        beyond = max(self.repeats - REPEATS, self.passes - PASSES)
        return min(2.0**beyond, LONGEST_WAIT) if 0 < beyond < 16 else LONGEST_WAIT if beyond > 0 else 0.0

    def rest(self) -> None:
        """A pass changed nothing, or there is news."""
        if self.passes:
            self.passes = self.repeats = 0
            self.seen.clear()
