"""The course of the metrics over a run, in at most 32 points.

A tuner's asha asks for the value at or soon after given steps (1, 3, 9, 27, …), a person for the shape of the curve; both
are served by points that lie evenly on a logarithmic scale. So when a point too many is there, the one goes whose
neighbours are closest to each other by ratio; the first at or after a power of 2 or 3 goes last, the first and the newest
never. Keeping the newest n was rejected (the early rungs are lost), so was every n-th (it depends on when one looks).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from gryvia_common.kinds.aijob import METRIC_HISTORY, MetricPoint

POWER_BONUS = 8.0
_POWERS_OF_3 = tuple(3**n for n in range(20))


def add_point(history: Sequence[MetricPoint], step: int, values: dict[str, float]) -> tuple[MetricPoint, ...]:
    """The history with these values at `step`. Later points are dropped: the run went back to an earlier step."""
    kept = [point for point in history if point.step is None or point.step <= step]
    if kept and kept[-1].step == step:
        kept[-1] = MetricPoint(step=step, values={**kept[-1].values, **values})
    else:
        kept.append(MetricPoint(step=step, values=values))
    return thin(kept)


def thin(points: Sequence[MetricPoint]) -> tuple[MetricPoint, ...]:
    """At most METRIC_HISTORY of the points, which are in the order of their steps."""
    kept = list(points)
    while len(kept) > METRIC_HISTORY:
        steps = [point.step or 0 for point in kept]
        del kept[min(range(1, len(kept) - 1), key=lambda i: (_worth(steps[i - 1], steps[i], steps[i + 1]), i))]
    return tuple(kept)


def _worth(before: int, step: int, after: int) -> float:
    """How much of the curve is lost without this step: the logarithm of the gap it would leave."""
    gap = math.log((max(after, 0) + 1) / (max(before, 0) + 1))
    return gap * POWER_BONUS if _passes_power(before, step) else gap


def _passes_power(before: int, step: int) -> bool:
    """Whether a power of 2 or 3 lies above `before` and not above `step`."""
    if step.bit_length() > before.bit_length():
        return True
    return bisect_right(_POWERS_OF_3, step) > bisect_right(_POWERS_OF_3, before)
