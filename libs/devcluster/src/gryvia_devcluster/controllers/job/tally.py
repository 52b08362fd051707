"""What has happened to a Job so far: its recorded counts and the ended pods that are not yet in them.

A pod is counted once: while it carries the tracking finalizer and has ended. Deleting counted pods later (by hand or by
garbage collection) therefore never makes a Job forget a success.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gryvia_devcluster.controllers.job.indexes import parse_indexes
from gryvia_devcluster.controllers.job.pods import failures_of_index, index_of, is_indexed, is_tracked
from gryvia_devcluster.controllers.job.policy import Judgement, judge_failure
from gryvia_devcluster.controllers.podstate import finished_at, is_active, is_deleting, is_finished, phase
from gryvia_devcluster.types import Json

MAX_BACKOFF = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Tally:
    active: tuple[Json, ...]
    terminating: tuple[Json, ...]
    counted: tuple[Json, ...]
    succeeded: int
    failed: int
    succeeded_indexes: frozenset[int]
    failed_indexes: frozenset[int]
    index_failures: dict[int, int]
    fail_job: str

    @property
    def alive(self) -> int:
        return len(self.active) + len(self.terminating)


def only_replaces_failed(job: Json) -> bool:
    """podReplacementPolicy Failed: a pod that is being deleted still holds its place."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed" or job["spec"].get("podFailurePolicy"))


def has_failed(job: Json, pod: Json) -> bool:
    """Failed, or deleted while it ran (which the default replacement policy counts at once)."""
    if phase(pod) == "Failed":
        return True
    return is_deleting(pod) and phase(pod) != "Succeeded" and not only_replaces_failed(job)


def count(job: Json, pods: Sequence[Json]) -> Tally:
    spec, status = job["spec"], job.get("status", {})
    indexed = is_indexed(job)
    completions = spec.get("completions")
    fresh = [pod for pod in pods if is_tracked(pod)]
    won = [pod for pod in fresh if phase(pod) == "Succeeded"]
    lost = [(pod, judge_failure(job, pod)) for pod in fresh if has_failed(job, pod)]
    done = parse_indexes(status.get("completedIndexes", ""), completions) if indexed else set()
    if indexed:
        done |= {i for pod in won if (i := index_of(pod)) is not None and i < completions}
    counting = [(pod, judgement) for pod, judgement in lost if judgement.verdict != "Ignore"]
    return Tally(
        active=tuple(pod for pod in pods if is_active(pod)),
        terminating=tuple(pod for pod in pods if is_deleting(pod) and not is_finished(pod)),
        counted=tuple(won + [pod for pod, _ in lost]),
        succeeded=len(done) if indexed else status.get("succeeded", 0) + len(won),
        failed=status.get("failed", 0) + len(counting),
        succeeded_indexes=frozenset(done),
        failed_indexes=frozenset(_failed_indexes(job, counting) - done),
        index_failures=_index_failures(job, pods),
        fail_job=next((j.message for _, j in counting if j.verdict == "FailJob"), ""),
    )


def _failed_indexes(job: Json, counting: list[tuple[Json, Judgement]]) -> set[int]:
    limit = job["spec"].get("backoffLimitPerIndex")
    if limit is None:
        return set()
    failed = parse_indexes(job.get("status", {}).get("failedIndexes", ""), job["spec"].get("completions"))
    for pod, judgement in counting:
        index = index_of(pod)
        if index is not None and (judgement.verdict == "FailIndex" or failures_of_index(pod) + 1 > limit):
            failed.add(index)
    return failed


def _index_failures(job: Json, pods: Sequence[Json]) -> dict[int, int]:
    """For each index, how many failures its next pod has behind it."""
    if job["spec"].get("backoffLimitPerIndex") is None:
        return {}
    failures: dict[int, int] = {}
    for pod in pods:
        index = index_of(pod)
        if index is not None and has_failed(job, pod):
            ignored = judge_failure(job, pod).verdict == "Ignore"
            failures[index] = max(failures.get(index, 0), failures_of_index(pod) + (0 if ignored else 1))
    return failures


def next_start(job: Json, pods: Sequence[Json], base: timedelta, index: int | None = None) -> datetime | None:
    """When the back-off after the latest failures ends: `base` doubled for each failure since the last success."""
    ended = sorted((p for p in pods if is_finished(p) and index in (None, index_of(p))), key=finished_at)
    failures = 0
    for pod in ended:
        failures = 0 if phase(pod) == "Succeeded" else failures + 1
    if failures == 0:
        return None
    return finished_at(ended[-1]) + min(base * 2.0 ** min(failures - 1, 20), MAX_BACKOFF)
