"""The status of a job: counts, conditions, and the rule that what others wrote stays.

Other controllers write the phase, the message and conditions of their own into the same status; so it is always the status as it
stands with our fields replaced, never a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gryvia_common.kinds.aijob import GryviaAIJobStatus, JobPhase
from gryvia_common.kinds.conditions import ConditionStatus, drop_condition, find_condition, set_condition, timestamp
from gryvia_common.kinds.model import Condition
from gryvia_common.kube.objects import annotations_of
from gryvia_jobs.observed import Observed
from gryvia_jobs.phases import FINAL, PARKED, queue_of, trouble, with_notes
from gryvia_jobs.reporting import Report
from gryvia_jobs.workload import SPEC_HASH, Job, spec_hash

Found = tuple[str, ConditionStatus, str, str]


def running_status(
    job: Job, found: Observed, phase: JobPhase, message: str, report: Report, ignored: Sequence[str], now: datetime
) -> GryviaAIJobStatus:
    """The status of a job whose workload there is, or is about to be."""
    nodes = sorted({pod.node for pod in found.pods if pod.node})
    ended = phase in FINAL
    return job.status.model_copy(
        update={
            "phase": phase,
            "message": with_notes(message, report.notes) or None,
            "start_time": job.status.start_time
            or (_first_run(found, now) if phase == "Running" or found.started else None),
            "completion_time": _end(found, now) if ended else None,
            "nodes_allocated": None if ended else nodes or None,
            "gpus_allocated": 0 if ended else sum(pod.gpus for pod in found.pods if pod.node),
            "retries": max(found.failures, job.status.retries or 0),
            "replicas_ready": 0 if ended else found.ready,
            "metrics": report.metrics,
            "observed_generation": job.generation,
            "conditions": _conditions(job, found, phase, report, ignored, now),
        }
    )


def settled_status(job: Job, phase: JobPhase, message: str, now: datetime) -> GryviaAIJobStatus:
    """The status of a job without a workload: refused, cancelled, preempted, ended, held by a quota. Nothing is held."""
    parked = phase in PARKED
    conditions = list(job.status.conditions or ())
    if parked:
        conditions = _set(job, conditions, _over(phase), now)
    return job.status.model_copy(
        update={
            "phase": phase,
            "message": message or None,
            "completion_time": (job.status.completion_time or timestamp(now)) if parked else None,
            "nodes_allocated": None,
            "gpus_allocated": 0,
            "replicas_ready": 0,
            "observed_generation": job.generation,
            "conditions": conditions or None,
        }
    )


def is_new(job: Job, phase: str) -> bool:
    """Whether this end is one we have not taken note of: others set phases too, and one end may follow another."""
    noted = find_condition(job.status.conditions, "PodsReady")
    return noted is None or noted.reason != phase


def _over(phase: str) -> Found:
    return "PodsReady", "False", phase, "no pod is to run any more"


def _first_run(found: Observed, now: datetime) -> str:
    times = [pod.started_at for pod in found.pods if pod.started_at]
    return timestamp(min(times, default=now))


def _end(found: Observed, now: datetime) -> str:
    return (found.verdict.at if found.verdict else "") or timestamp(now)


def _conditions(
    job: Job, found: Observed, phase: JobPhase, report: Report, ignored: Sequence[str], now: datetime
) -> list[Condition] | None:
    conditions = list(job.status.conditions or ())
    said = [*_placement(job, found), *_readiness(job, found, phase), *_spec(job, found, ignored)]
    said += _metrics(report, find_condition(conditions, "MetricsReported"))
    for one in said:
        conditions = _set(job, conditions, one, now)
    for kind in {"FieldsIgnored", "SpecApplied", "MetricsReported", "MetricsValid"} - {kind for kind, *_ in said}:
        conditions = drop_condition(conditions, kind)
    return conditions or None


def _set(job: Job, conditions: list[Condition], said: Found, now: datetime) -> list[Condition]:
    kind, status, reason, message = said
    return set_condition(conditions, kind, status, reason, message, now=now, generation=job.generation)


def _placement(job: Job, found: Observed) -> list[Found]:
    said: list[Found] = []
    unschedulable = [pod.unschedulable for pod in found.pods if pod.unschedulable]
    if unschedulable:
        said.append(("Scheduled", "False", "Unschedulable", unschedulable[0]))
    elif job.spec.gpus == 0:
        said.append(("Scheduled", "True", "CPUOnly", "the job asks for no GPU"))
    elif found.pods and all(pod.node or pod.ended for pod in found.pods):
        said.append(("Scheduled", "True", "PodsScheduled", "every pod has a node"))
    queue = queue_of(found)
    if queue and found.suspended:
        said.append(("KueueAdmitted", "False", "Waiting", f"not admitted yet by LocalQueue {queue}"))
    elif queue:
        said.append(("KueueAdmitted", "True", "Admitted", f"admitted by LocalQueue {queue}"))
    return said


def _readiness(job: Job, found: Observed, phase: JobPhase) -> list[Found]:
    if phase in FINAL:
        return [_over(phase)]
    if found.suspended:
        return [("PodsReady", "False", "Suspended", "the workload is suspended")]
    if found.ready >= found.wanted:
        return [("PodsReady", "True", "AllReady", f"{found.ready} of {found.wanted} pods are ready")]
    reason, message = trouble(job, found)
    return [("PodsReady", "False", reason or "NotReady", message or f"{found.ready} of {found.wanted} pods are ready")]


def _spec(job: Job, found: Observed, ignored: Sequence[str]) -> list[Found]:
    said: list[Found] = []
    if ignored:
        said.append(("FieldsIgnored", "True", "NoEffect", "; ".join(ignored)))
    frozen = annotations_of(found.workload or {}).get(SPEC_HASH)
    if frozen and frozen != spec_hash(job.spec):
        message = (
            "the spec was changed after the workload had been created, which stays as it is; make a new job to apply it"
        )
        said.append(("SpecApplied", "False", "TemplateFrozen", message))
    return said


def _metrics(report: Report, noted: Condition | None) -> list[Found]:
    said: list[Found] = []
    if report.metrics is not None:
        source = report.source or (noted.message if noted else "read from the annotations")
        said.append(("MetricsReported", "True", "Reported", source))
    if report.notes:
        said.append(("MetricsValid", "False", "NotRead", "; ".join(report.notes)))
    return said
