"""asha: which running trials are stopped at which rung, and why.

Rungs are minResource * factor^k up to maxEpochs. A trial's value at a rung is what it reported first at or after it, in the
objective metric; a trial is judged at the highest rung it has reached, in the objective's direction, against everyone who has a
value there, dead or alive (Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning", without promotion
queues: trials run on unless they are stopped). It is stopped when it is outside the best ceil(n / factor) and n is at least 2;
ties stay. A value that is not finite is no value: it never judges and is never judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gryvia_common.kinds.autotuner import AshaConfig, Objective
from gryvia_common.kinds.trials import TrialRecord
from gryvia_common.kube.objects import Json

DEFAULT_FACTOR = 3
INT32_MAX = 2**31 - 1


def factor_of(config: AshaConfig) -> int:
    return config.reduction_factor if config.reduction_factor > 1 else DEFAULT_FACTOR


def rungs_of(config: AshaConfig) -> tuple[int, ...]:
    """Empty when not even the first rung is within maxEpochs."""
    rungs = []
    rung = max(config.min_resource, 1)
    while rung <= config.max_epochs:
        rungs.append(rung)
        rung *= factor_of(config)
    return tuple(rungs)


def observed(record: TrialRecord, job: Json, metric: str, rungs: tuple[int, ...]) -> TrialRecord:
    """The trial with the points that its job has reported by now at the rungs it had not reached before."""
    points = sorted(_points(job, metric))
    kept = dict(record.rungs)
    for rung in rungs:
        if not any(step >= rung for step in kept):
            found = next((point for point in points if point[0] >= rung), None)
            if found is None:
                break
            kept[found[0]] = found[1]
    if len(kept) == len(record.rungs):
        return record
    return replace(record, rungs=tuple(sorted(kept.items())))


def value_at(record: TrialRecord, rung: int) -> float | None:
    return next((value for step, value in record.rungs if step >= rung), None)


def judged(records: Iterable[TrialRecord], config: AshaConfig, objective: Objective) -> dict[int, str]:
    """Which running trials to stop: number to message."""
    everyone = [record for record in records if record.rungs]
    rungs = rungs_of(config)
    sign = 1.0 if objective.direction == "minimize" else -1.0
    values = {
        rung: sorted(sign * value for record in everyone if (value := value_at(record, rung)) is not None)
        for rung in rungs
    }
    stops: dict[int, str] = {}
    for record in everyone:
        reached = [rung for rung in rungs if value_at(record, rung) is not None]
        if not record.active or not reached:
            continue
        rung = reached[-1]
        value, peers = value_at(record, rung), values[rung]
        keep = math.ceil(len(peers) / factor_of(config))
        if value is not None and len(peers) >= 2 and sign * value > peers[keep - 1]:
            stops[record.number] = (
                f"stopped at rung {rung}: {objective.metric_name} {value:g} is not among the best {keep} of {len(peers)}"
                f" (needs {sign * peers[keep - 1]:g})"
            )
    return stops


def _points(job: Json, metric: str) -> Iterator[tuple[int, float]]:
    """(resource, value) of everything the job reported; the resource is the epoch, where there is none the step."""
    metrics = (job.get("status") or {}).get("metrics") or {}
    for point in metrics.get("history") or ():
        values = point.get("values") or {}
        yield from _point(values.get("epoch", point.get("step")), values.get(metric))
    newest: Mapping[str, Any] = metrics.get("values") or {}
    value = newest.get(metric, metrics.get("loss") if metric == "loss" else None)
    resource = metrics.get("epoch", newest.get("epoch", metrics.get("step")))
    yield from _point(resource, value)


def _point(resource: object, value: object) -> Iterator[tuple[int, float]]:
    if _finite(resource) and _finite(value):
        step = int(float(resource))  # type: ignore[arg-type]  # _finite has seen to it
        if 0 <= step <= INT32_MAX:
            yield step, float(value)  # type: ignore[arg-type]  # as above


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
