"""The status of a job: counts, conditions, and the rule that what others wrote stays.

Other controllers write the phase, the message and conditions of their own into the same status; so it is always the status as it
stands with our fields replaced, never a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from gryvia_common.kinds.aijob import GryviaAIJobStatus, JobPhase
from gryvia_common.kinds.conditions import Said, drop_condition, find_condition, set_conditions, timestamp
from gryvia_common.kinds.model import Condition
from gryvia_common.kube.objects import annotations_of
from gryvia_common.kube.templates import SPEC_HASH
from gryvia_common.kube.workloads import Workload
from gryvia_jobs.phases import FINAL, PARKED, blocked, with_notes
from gryvia_jobs.reporting import Report
from gryvia_jobs.workload import Job, frozen_hash

AWAITED: Said = ("MetricsValid", "Unknown", "PodsAwaited", "the workload has ended; the end of its pods is awaited")
PASSING = ("FieldsIgnored", "SpecApplied", "MetricsReported", "MetricsValid")
FROZEN = "the spec was changed after the workload had been created, which stays as it is; make a new job to apply it"


def running_status(
    job: Job, found: Workload, phase: JobPhase, message: str, report: Report, ignored: Sequence[str], now: datetime
) -> GryviaAIJobStatus:
    """The status of a job whose workload there is, or is about to be."""
    ended, verdict = phase in FINAL, found.verdict
    held = [] if ended else [pod for pod in found.pods if pod.node]
    began = [pod.started_at for pod in found.pods if pod.started_at]
    first = timestamp(min(began, default=now)) if phase == "Running" or found.started else None
    said = [*_workload(job, found, phase), *_spec(job, found, ignored), *_metrics(job, report)]
    conditions = set_conditions(job.status.conditions, said, passing=PASSING, now=now, generation=job.generation)
    return _stated(
        job,
        phase,
        with_notes(message, report.notes),
        conditions,
        start_time=job.status.start_time or first,
        completion_time=((verdict.at if verdict else "") or timestamp(now)) if ended else None,
        nodes_allocated=sorted({pod.node for pod in held}) or None,
        gpus_allocated=sum(pod.gpus for pod in held),
        retries=max(found.failures, job.status.retries or 0),
        replicas_ready=0 if ended else found.ready,
        metrics=report.metrics,
    )


def awaiting_status(job: Job, now: datetime) -> GryviaAIJobStatus:
    """The note from which on a job that ended waits for its pods."""
    return job.status.model_copy(update={"conditions": _with(job, list(job.status.conditions or ()), AWAITED, now)})


def settled_status(job: Job, phase: JobPhase, message: str, now: datetime) -> GryviaAIJobStatus:
    """The status of a job without a workload: refused, cancelled, preempted, ended, held by a quota. Nothing is held."""
    parked = phase in PARKED
    conditions = list(job.status.conditions or ())
    if parked:
        conditions = _with(job, conditions, _over(phase), now)
    if phase == "Preempted":
        # What Kueue admitted is gone: if the job is Queued next, that may be the word of a quota.
        conditions = drop_condition(conditions, "KueueAdmitted")
    ended = (job.status.completion_time or timestamp(now)) if parked else None
    nothing: dict[str, object] = {"nodes_allocated": None, "gpus_allocated": 0, "replicas_ready": 0}
    return _stated(job, phase, message, conditions, completion_time=ended, **nothing)


def is_new(job: Job, phase: JobPhase) -> bool:
    """Whether this end is one we have not taken note of: others set phases too, and one end may follow another."""
    noted = find_condition(job.status.conditions, "PodsReady")
    return noted is None or noted.reason != phase


def _stated(
    job: Job, phase: JobPhase, message: str, conditions: list[Condition], **fields: object
) -> GryviaAIJobStatus:
    seen = {"observed_generation": job.generation, "conditions": conditions or None}
    return job.status.model_copy(update={"phase": phase, "message": message or None, **seen, **fields})


def _over(phase: JobPhase) -> Said:
    return "PodsReady", "False", phase, "no pod is to run any more"


def _with(job: Job, conditions: list[Condition], said: Said, now: datetime) -> list[Condition]:
    return set_conditions(conditions, (said,), now=now, generation=job.generation)


def _workload(job: Job, found: Workload, phase: JobPhase) -> Iterator[Said]:
    unschedulable = next((pod.unschedulable for pod in found.pods if pod.unschedulable), "")
    if unschedulable:
        yield "Scheduled", "False", "Unschedulable", unschedulable
    elif job.spec.gpus == 0:
        yield "Scheduled", "True", "CPUOnly", "the job asks for no GPU"
    elif found.pods and all(pod.node or pod.ended for pod in found.pods):
        yield "Scheduled", "True", "PodsScheduled", "every pod has a node"
    if found.queue and found.suspended:
        yield "KueueAdmitted", "False", "Waiting", f"not admitted yet by LocalQueue {found.queue}"
    elif found.queue:
        yield "KueueAdmitted", "True", "Admitted", f"admitted by LocalQueue {found.queue}"
    count = f"{found.ready} of {found.wanted} pods are ready"
    if phase in FINAL:
        yield _over(phase)
    elif found.suspended:
        yield "PodsReady", "False", "Suspended", "the workload is suspended"
    elif found.ready >= found.wanted:
        yield "PodsReady", "True", "AllReady", count
    else:
        reason, message = blocked(job, found)
        yield "PodsReady", "False", reason or "NotReady", message or count


def _spec(job: Job, found: Workload, ignored: Sequence[str]) -> Iterator[Said]:
    if ignored:
        yield "FieldsIgnored", "True", "NoEffect", "; ".join(ignored)
    if annotations_of(found.raw).get(SPEC_HASH) not in (None, frozen_hash(job.spec)):
        yield "SpecApplied", "False", "TemplateFrozen", FROZEN


def _metrics(job: Job, report: Report) -> Iterator[Said]:
    noted = find_condition(job.status.conditions, "MetricsReported")
    if report.metrics is not None:
        source = report.source or (noted.message if noted else "read from the annotations")
        yield "MetricsReported", "True", "Reported", source
    if report.notes:
        yield "MetricsValid", "False", "NotRead", "; ".join(report.notes)
