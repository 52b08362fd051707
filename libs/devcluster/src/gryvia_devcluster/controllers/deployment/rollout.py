"""How many replicas each ReplicaSet should have now: the rolling update's arithmetic. Pure numbers.

Source: k8s.io/kubernetes pkg/controller/deployment/{rolling,recreate}.go. At no time are there more than replicas +
maxSurge pods asked for, nor are available pods taken away below replicas - maxUnavailable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gryvia_devcluster.controllers.template import scaled_amount
from gryvia_devcluster.types import Json


@dataclass(frozen=True, slots=True)
class SetSize:
    """One ReplicaSet: asked for, existing, available."""

    desired: int
    existing: int
    available: int


@dataclass(frozen=True, slots=True)
class Bounds:
    replicas: int
    surge: int
    unavailable: int


def bounds_of(deployment: Json) -> Bounds:
    spec = deployment["spec"]
    replicas = int(spec.get("replicas", 1))
    rolling = spec.get("strategy", {}).get("rollingUpdate") or {}
    surge = scaled_amount(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = min(scaled_amount(rolling.get("maxUnavailable", "25%"), replicas, up=False), replicas)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(replicas, surge, unavailable)


def new_size(bounds: Bounds, new: SetSize, old: Sequence[SetSize]) -> int:
    """Grow by what the surge leaves room for; shrink at once to what is asked for."""
    if new.desired >= bounds.replicas:
        return bounds.replicas
    room = bounds.replicas + bounds.surge - new.desired - sum(s.desired for s in old)
    return min(new.desired + max(room, 0), bounds.replicas)


def old_sizes(bounds: Bounds, new: SetSize, old: Sequence[SetSize]) -> list[int]:
    """`old` from oldest to newest. Broken pods go first, then healthy ones down to the least that must be available."""
    minimum = bounds.replicas - bounds.unavailable
    total = new.desired + sum(s.desired for s in old)
    broken_new = max(new.desired - new.available, 0)
    budget = total - minimum - broken_new
    sizes = [s.desired for s in old]
    for index, each in enumerate(old):
        unhealthy = max(min(each.desired - each.available, sizes[index]), 0)
        taken = min(unhealthy, max(budget, 0))
        sizes[index] -= taken
        budget -= taken
    available = new.available + sum(min(s.available, size) for s, size in zip(old, sizes, strict=True))
    spare = min(max(available - minimum, 0), max(budget, 0))
    for index, size in enumerate(sizes):
        taken = min(size, spare)
        sizes[index] -= taken
        spare -= taken
    return sizes


def proportional_sizes(bounds: Bounds, new: SetSize, old: Sequence[SetSize]) -> tuple[int, list[int]]:
    """For a paused Deployment that is scaled: keep the mix, largest set taking the rest of the rounding."""
    sizes = [new.desired, *(s.desired for s in old)]
    total = sum(sizes)
    allowed = bounds.replicas + (bounds.surge if sum(1 for s in sizes if s) > 1 else 0)
    if total == 0 or total == allowed:
        return (bounds.replicas if total == 0 else new.desired), [s.desired for s in old]
    scaled = [size * allowed // total for size in sizes]
    scaled[sizes.index(max(sizes))] += allowed - sum(scaled)
    return scaled[0], scaled[1:]
