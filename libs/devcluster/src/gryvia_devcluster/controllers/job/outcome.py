"""How and why a Job ends, in the order the real controller asks.

A Job that has to end first gets FailureTarget or SuccessCriteriaMet, and Failed or Complete only when none of its pods
runs any more (Kubernetes 1.31), so that whoever sees the final condition may free what the pods used.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from gryvia_devcluster.clock import parse
from gryvia_devcluster.controllers.job.pods import is_indexed
from gryvia_devcluster.controllers.job.policy import success_rule_met
from gryvia_devcluster.controllers.job.tally import Tally
from gryvia_devcluster.controllers.podstate import condition, has_condition, restarts
from gryvia_devcluster.types import Json


@dataclass(frozen=True, slots=True)
class Outcome:
    kind: Literal["Complete", "Failed"]
    reason: str
    message: str

    @property
    def interim(self) -> str:
        return "SuccessCriteriaMet" if self.kind == "Complete" else "FailureTarget"


def is_over(job: Json) -> bool:
    return has_condition(job, "Complete") or has_condition(job, "Failed")


def decide_outcome(job: Json, tally: Tally, now: datetime) -> Outcome | None:
    return _announced(job) or _failure(job, tally, now) or _success(job, tally)


def _announced(job: Json) -> Outcome | None:
    for interim, kind in (("FailureTarget", "Failed"), ("SuccessCriteriaMet", "Complete")):
        found = condition(job, interim)
        if found is not None and found["status"] == "True":
            return Outcome(kind, found.get("reason", ""), found.get("message", ""))  # type: ignore[arg-type]  # of the tuple above
    return None


def _failure(job: Json, tally: Tally, now: datetime) -> Outcome | None:
    spec = job["spec"]
    if tally.fail_job:
        return Outcome("Failed", "PodFailurePolicy", tally.fail_job)
    if tally.failed > _backoff_limit(job) or _restarted_too_often(job, tally):
        return Outcome("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = deadline_of(job)
    if deadline is not None and now >= deadline and not spec.get("suspend"):
        return Outcome("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    maximum = spec.get("maxFailedIndexes")
    if maximum is not None and len(tally.failed_indexes) > maximum:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return Outcome("Failed", "MaxFailedIndexesExceeded", message)
    if tally.failed_indexes and len(tally.failed_indexes) + tally.succeeded >= spec["completions"]:
        return Outcome("Failed", "FailedIndexes", "Job has failed indexes")
    return None


def _success(job: Json, tally: Tally) -> Outcome | None:
    if is_indexed(job) and (message := success_rule_met(job, set(tally.succeeded_indexes))):
        return Outcome("Complete", "SuccessPolicy", message)
    completions = job["spec"].get("completions")
    drained = tally.succeeded > 0 and not tally.active and not job["spec"].get("suspend")
    if drained if completions is None else tally.succeeded >= completions:
        return Outcome("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def deadline_of(job: Json) -> datetime | None:
    seconds, start = job["spec"].get("activeDeadlineSeconds"), job.get("status", {}).get("startTime")
    return None if seconds is None or start is None else parse(start) + timedelta(seconds=seconds)


def _backoff_limit(job: Json) -> int:
    default = 2**31 - 1 if job["spec"].get("backoffLimitPerIndex") is not None else 6
    return int(job["spec"].get("backoffLimit", default))


def _restarted_too_often(job: Json, tally: Tally) -> bool:
    """With restartPolicy OnFailure the restarts inside the pods count, as there are no failed pods to count."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    total = sum(restarts(pod) for pod in tally.active)
    limit = _backoff_limit(job)
    return total > 0 if limit == 0 else total >= limit
