"""When a study ends before its trials are used up: goal, early stopping, failures, refusals, duration, GPU hours.

Every answer is computed anew from the history, never remembered, so that a pass after a crash gives the same one. The
message names the budget, its limit and what was reached.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from gryvia_common.kinds.autotuner import GryviaAutoTunerSpec
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.trials import TrialRecord
from gryvia_tuner.trials import REFUSED

REFUSED_IN_A_ROW = 10
"""What the API server refuses ten times it will refuse a thousand times."""


@dataclass(frozen=True, slots=True)
class Stop:
    """`failed` None: as the results say."""

    message: str
    failed: bool | None = None


def best_of(records: Iterable[TrialRecord], direction: str) -> TrialRecord | None:
    """The best result; of equal ones the first completed."""
    sign = 1.0 if direction == "minimize" else -1.0
    found: tuple[tuple[float, str, int], TrialRecord] | None = None
    for record in records:
        if record.phase == "Succeeded" and record.value is not None:
            key = (sign * record.value, record.ended, record.number)
            if found is None or key < found[0]:
                found = key, record
    return found[1] if found else None


def stop_of(
    spec: GryviaAutoTunerSpec,
    records: Collection[TrialRecord],
    best: TrialRecord | None,
    started: datetime,
    now: datetime,
) -> Stop | None:
    """Why the study ends now; None when it goes on."""
    if best is not None and best.value is not None:
        goal, metric = spec.objective.goal, spec.objective.metric_name
        if goal is not None and (best.value >= goal if spec.objective.direction == "maximize" else best.value <= goal):
            return Stop(f"objective.goal {goal:g} reached: {metric} is {best.value:g}", failed=False)
        after = _results_after(records, best)
        if 0 < spec.early_stopping_rounds <= after:
            return Stop(
                f"earlyStoppingRounds {spec.early_stopping_rounds} reached: no better {metric} in {after} results",
                failed=False,
            )
    failures = sum(record.phase == "Failed" and not record.lost for record in records)
    if spec.max_failed_trials is not None and failures > spec.max_failed_trials:
        return Stop(f"maxFailedTrials {spec.max_failed_trials} exceeded: {failures} trials failed", failed=True)
    refused = sorted(records, key=lambda record: record.number)[-REFUSED_IN_A_ROW:]
    if len(refused) == REFUSED_IN_A_ROW and all(record.message.startswith(REFUSED) for record in refused):
        return Stop(f"{REFUSED_IN_A_ROW} trials in a row could not be created: {refused[-1].message}")
    limit = spec.max_duration_seconds
    if limit is not None and now - started >= timedelta(seconds=limit):
        return Stop(f"maxDurationSeconds {limit} reached")
    if spec.max_gpu_hours is not None and gpus_of(spec) > 0:
        used = gpu_hours(spec, records, now)
        if used >= spec.max_gpu_hours:
            return Stop(f"maxGpuHours {spec.max_gpu_hours:g} reached: {used:.2f} GPU hours used")
    return None


def look_again(
    spec: GryviaAutoTunerSpec, records: Collection[TrialRecord], started: datetime, now: datetime
) -> datetime | None:
    """When a budget of time will be reached if nothing else happens."""
    moments = []
    if spec.max_duration_seconds is not None:
        moments.append(started + timedelta(seconds=spec.max_duration_seconds))
    running = sum(record.phase == "Running" for record in records)
    rate = gpus_of(spec) * running
    if spec.max_gpu_hours is not None and rate > 0:
        left = spec.max_gpu_hours - gpu_hours(spec, records, now)
        moments.append(now + timedelta(hours=max(left, 0.0) / rate, seconds=1))
    return min(moments, default=None)


def gpus_of(spec: GryviaAutoTunerSpec) -> int:
    """GPUs of one trial."""
    spread = spec.job_template.distributed
    nodes = (spread.nodes or 1) if spread is not None and spread.enabled else 1
    return spec.job_template.gpus * max(nodes, 1)


def gpu_hours(spec: GryviaAutoTunerSpec, records: Iterable[TrialRecord], now: datetime | None) -> float:
    """Of all trials from their job's start on; `now` None leaves the running ones out."""
    seconds = 0.0
    for record in records:
        if record.started and (record.ended or now is not None):
            end = parse_timestamp(record.ended) if record.ended else now
            assert end is not None
            seconds += max((end - parse_timestamp(record.started)).total_seconds(), 0.0)
    return seconds / 3600 * gpus_of(spec)


def _results_after(records: Iterable[TrialRecord], best: TrialRecord) -> int:
    """Results completed after the best; of those of one second the higher number counts as later."""
    place = (best.ended, best.number)
    return sum(
        record.phase == "Succeeded" and record.value is not None and (record.ended, record.number) > place
        for record in records
    )
