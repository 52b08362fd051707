"""What a GryviaAIJob has reported: the value of a metric, and its course.

The value is read from the first place that has one: the annotation gryvia.io/metric-<name>, status.metrics.values, for `loss`
status.metrics.loss. Only a plain finite decimal is a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from gryvia_common.kube.objects import Json, annotations_of
from gryvia_common.kube.resources import GROUP
from gryvia_common.numbers import parse_decimal

METRIC = f"{GROUP}/metric-"
INT32_MAX = 2**31 - 1
_NOT_IN_A_KEY = re.compile(r"[^A-Za-z0-9_.-]")


def metric_of(job: Json, metric: str) -> tuple[float | None, str]:
    """The value, or why there is none."""
    key = METRIC + _NOT_IN_A_KEY.sub("_", metric)
    text = annotations_of(job).get(key)
    if text is not None:
        value = parse_decimal(text)
        return (
            value,
            "" if value is not None else f'annotation {key}: "{text[:40]}" is not a plain finite decimal number',
        )
    status = job.get("status") or {}
    found = _newest(status.get("metrics") or {}, metric)
    if found is None:
        said = str(status.get("message") or "")
        return None, f"the job did not report the metric {metric}{': ' if said else ''}{said}"
    value = _finite(found)
    return (
        value,
        "" if value is not None else f'status.metrics of the job: "{found}" is not a finite number for {metric}',
    )


def points_of(job: Json, metric: str) -> Iterator[tuple[int, float]]:
    """(resource, value) of everything reported; the resource is the epoch, where there is none the step. What is not finite
    is left out."""
    metrics = (job.get("status") or {}).get("metrics") or {}
    newest = metrics.get("values") or {}
    found = [(metrics.get("epoch", newest.get("epoch", metrics.get("step"))), _newest(metrics, metric))]
    for point in metrics.get("history") or ():
        values = point.get("values") or {}
        found.append((values.get("epoch", point.get("step")), values.get(metric)))
    for said, reported in found:
        resource, value = _finite(said), _finite(reported)
        if resource is not None and value is not None and 0 <= int(resource) <= INT32_MAX:
            yield int(resource), value


def _newest(metrics: Json, metric: str) -> object:
    return (metrics.get("values") or {}).get(metric, metrics.get("loss") if metric == "loss" else None)


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
