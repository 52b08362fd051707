"""When a study ends before its trials are used up: goal, early stopping, failures, refusals, duration, GPU hours.

Every answer is computed anew from the history, never remembered, so that a pass after a crash gives the same one. The
message names the budget, its limit and what was reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from gryvia_common.kinds.gpus import gpus_of, hours_of
from gryvia_tuner.study import Study
from gryvia_tuner.trials import REFUSED

REFUSED_IN_A_ROW = 10
"""What the API server refuses ten times it will refuse a thousand times."""


@dataclass(frozen=True, slots=True)
class Stop:
    """`failed` None: as the results say."""

    message: str
    failed: bool | None = None


def stops(study: Study) -> Iterator[Stop]:
    """Why the study ends now, the first reason first; nothing when it goes on."""
    spec, records, best = study.spec, study.records, study.best
    goal, metric = spec.objective.goal, spec.objective.metric_name
    if best is not None and best.value is not None:
        if goal is not None and (best.value <= goal if study.minimize else best.value >= goal):
            yield Stop(f"objective.goal {goal:g} reached: {metric} is {best.value:g}", failed=False)
        rounds, place = spec.early_stopping_rounds, (best.ended, best.number)
        # Of those that ended in the same second the higher number counts as later.
        after = sum(one.result is not None and (one.ended, one.number) > place for one in records.values())
        if 0 < rounds <= after:
            yield Stop(f"earlyStoppingRounds {rounds} reached: no better {metric} in {after} results", failed=False)
    failures = sum(record.phase == "Failed" and not record.lost for record in records.values())
    if spec.max_failed_trials is not None and failures > spec.max_failed_trials:
        yield Stop(f"maxFailedTrials {spec.max_failed_trials} exceeded: {failures} trials failed", failed=True)
    newest = [records[number].message for number in sorted(records)[-REFUSED_IN_A_ROW:]]
    if len(newest) == REFUSED_IN_A_ROW and all(message.startswith(REFUSED) for message in newest):
        yield Stop(f"{REFUSED_IN_A_ROW} trials in a row could not be created: {newest[-1]}")
    limit = spec.max_duration_seconds
    if limit is not None and study.now - study.started >= timedelta(seconds=limit):
        yield Stop(f"maxDurationSeconds {limit} reached")
    if spec.max_gpu_hours is not None and gpus_of(spec.job_template) > 0:
        used = gpu_hours(study, study.now)
        if used >= spec.max_gpu_hours:
            yield Stop(f"maxGpuHours {spec.max_gpu_hours:g} reached: {used:.2f} GPU hours used")


def look_again(study: Study) -> datetime | None:
    """When a budget of time will be reached if nothing else happens."""
    spec, moments = study.spec, []
    if spec.max_duration_seconds is not None:
        moments.append(study.started + timedelta(seconds=spec.max_duration_seconds))
    rate = gpus_of(spec.job_template) * study.counts["Running"]
    if spec.max_gpu_hours is not None and rate > 0:
        left = spec.max_gpu_hours - gpu_hours(study, study.now)
        moments.append(study.now + timedelta(hours=max(left, 0.0) / rate, seconds=1))
    return min(moments, default=None)


def gpu_hours(study: Study, now: datetime | None) -> float:
    """Of all trials from their job's start on; `now` None leaves the running ones out."""
    spans = ((record.started, record.ended) for record in study.records.values())
    return hours_of(spans, now) * gpus_of(study.spec.job_template)
