"""What the bridge knows about itself, for readiness and for people: which role, which types are complete and live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

# A type whose watch has said nothing (no bookmark even) for this long is not live.
SILENCE = 120.0
# A publication that NATS has not confirmed for this long, over all its tries.
STUCK = 15.0


@dataclass(slots=True)
class TypeState:
    """One type. `synced`: its first complete difference is in the stream. `live`: a watch is open. Times are monotonic
    seconds."""

    synced: bool = False
    live: bool = False
    error: str = ""
    heard_at: float = float("-inf")

    def began_watch(self, now: float) -> None:
        self.live = True
        self.heard_at = max(self.heard_at, now)

    def heard(self, now: float) -> None:
        self.heard_at = now
        self.error = ""

    def failed(self, error: str) -> None:
        self.live = False
        self.error = error


@dataclass(slots=True)
class BridgeState:
    """The whole bridge. A standby is ready: it is there to take over."""

    role: Literal["standby", "active"] = "standby"
    types: dict[str, TypeState] = field(default_factory=dict)
    lag: Callable[[], float] = lambda: 0.0
    went_back: bool = False
    """The stream has to be made anew before anything is published: the cluster is at an earlier state."""

    def stuck(self) -> str:
        """Whether NATS, though connected, does not take what there is to publish (its disk is full, say); empty when it does."""
        lag = self.lag()
        return f"NATS has not stored a change for {lag:.0f} s; see its log" if lag > STUCK else ""

    def wrong(self, now: float) -> str:
        """Why the bridge is not ready; empty when it is."""
        if self.role == "standby":
            return ""
        reasons = []
        for plural, state in sorted(self.types.items()):
            if not state.synced:
                reasons.append(f"{plural} is not complete yet" + (f" ({state.error})" if state.error else ""))
            elif not state.live and now - state.heard_at > SILENCE:
                reasons.append(f"{plural} has had no watch for {now - state.heard_at:.0f} s ({state.error})")
        return "; ".join(reasons)
