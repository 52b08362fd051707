"""The life of a GryviaAIJob as one pure function.

    ended or parked   what is still there is taken away, nothing is made
    held by a quota   nothing is made
    cancelled         the workload goes, the claim stays
    no workload yet   the spec is judged; a bad one fails, a good one gets its children
    a workload        its state becomes the phase; nothing of it is changed but `suspend`

Ends stick: no path leads out of Succeeded, Failed, Rejected or Cancelled, and none from Running but to an end. Several
controllers write `status.phase` by contract (quota, preemption, the CLI's cancel): a phase somebody else set is obeyed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from gryvia_common.bus.events import (
    DomainEvent,
    JobCancelled,
    JobEvent,
    JobFailed,
    JobPreempted,
    JobRejected,
    JobStarted,
    JobSucceeded,
)
from gryvia_common.kinds.aijob import AI_JOB, GryviaAIJobStatus, JobPhase
from gryvia_common.kinds.conditions import find_condition, set_condition
from gryvia_common.kube.children import is_controlled_by
from gryvia_common.kube.objects import Json, is_deleting, metadata, uid_of
from gryvia_common.kube.resources import GROUP, PVCS, SERVICES
from gryvia_common.kube.workloads import Workload
from gryvia_common.runtime.parsing import parse_object
from gryvia_common.runtime.plan import Delete, Plan, Record
from gryvia_common.runtime.world import FixedWorld, Refusal, World
from gryvia_jobs.phases import FINAL, PARKED, active_message, blocked, state
from gryvia_jobs.reporting import report
from gryvia_jobs.status import awaiting_status, is_new, running_status, settled_status
from gryvia_jobs.validation import problems, without_effect
from gryvia_jobs.workload import WORKLOADS, Job, children, local_queue, observe

CANCEL = f"{GROUP}/cancel"
FORBIDDEN_AGAIN = timedelta(seconds=30)
_ENDS: dict[str, tuple[type[JobEvent], Literal["Normal", "Warning"], str]] = {
    "Succeeded": (JobSucceeded, "Normal", "the job has succeeded"),
    "Failed": (JobFailed, "Warning", "the job has failed"),
    "Cancelled": (JobCancelled, "Normal", "the job was cancelled"),
    "Rejected": (JobRejected, "Warning", "the job was rejected"),
    "Preempted": (JobPreempted, "Warning", "the job was preempted"),
}


def decide(kueue: bool, job: Job, world: World, now: datetime) -> Plan:
    """`kueue`: whether the Kueue integration is on."""
    if job.deleting:
        return Plan()
    phase = job.status.phase or "Pending"
    found = observe(job, world)
    queue = found.queue or local_queue(job, kueue=kueue)
    if job.annotations.get(CANCEL) == "true" and phase not in FINAL and found.verdict is None:
        return _put_away(job, found, world, "Cancelled", f"cancelled by annotation {CANCEL}", now)
    if phase in PARKED:
        return _put_away(job, found, world, phase, _end_message(job, found, phase), now)
    # Only we set KueueAdmitted: without it, Queued is the word of a quota, also for a job that is meant for Kueue.
    if phase == "Queued" and not (queue and find_condition(job.status.conditions, "KueueAdmitted")):
        return _put_away(job, found, world, phase, job.status.message or "", now)
    if not found.raw and (wrong := problems(job)):
        return _put_away(job, found, world, "Failed", "; ".join(wrong), now)
    return _run(kueue, job, found, queue, world, now)


def invalid(raw: Json, message: str, now: datetime) -> Plan:
    """A spec that does not parse: the end of a job that has not begun; of one under way only the edit is refused."""
    job: Job = parse_object(AI_JOB, {**raw, "spec": {"type": "training", "gpus": 0, "image": "unknown"}})
    if job.deleting or job.status.phase in PARKED:
        return Plan()
    if job.status.observed_generation is None:
        return _put_away(job, Workload(), FixedWorld(), "Failed", message, now)
    said = set_condition(
        job.status.conditions, "SpecApplied", "False", "InvalidSpec", message, now=now, generation=job.generation
    )
    return Plan(status=job.status.model_copy(update={"observed_generation": job.generation, "conditions": said}))


def _run(kueue: bool, job: Job, found: Workload, queue: str, world: World, now: datetime) -> Plan:
    """Make the children that are missing and say how far it is."""
    applies = children(job, found, queue)
    refusal = next((r for one in applies if (r := world.refusal(one.resource, metadata(one.manifest)["name"]))), None)
    if not found.raw:
        if refusal is not None and not refusal.may_pass:
            return _put_away(job, found, world, "Failed", _refused(refusal), now)
        # What is about to be made counts already: its own first pass must not change the status again.
        found = Workload(applies[-1].resource, applies[-1].manifest)
    reported = report(job, found, world, now)
    if reported.unread:
        noted = awaiting_status(job, now) if reported.late else None
        return Plan(status=noted, actions=reported.actions, again_at=reported.again_at)
    phase, message = state(job, found)
    if refusal is not None:
        message = _refused(refusal)
    status = running_status(job, found, phase, message, reported, without_effect(job, kueue=kueue), now)
    return Plan(
        status=status,
        apply=() if found.verdict else applies,
        emit=_events(job, status, found),
        record=_records(job, found, status),
        actions=() if found.verdict else reported.actions,
        again_at=now + FORBIDDEN_AGAIN if refusal else None,
    )


def _put_away(job: Job, found: Workload, world: World, phase: JobPhase, message: str, now: datetime) -> Plan:
    """An end that is not the workload's own, one reached before, or a quota that holds the job: no workload that still runs, no
    new child. A workload that has ended by itself stays for its logs, unless the job was refused."""
    refused = phase == "Rejected"
    spared = uid_of(found.raw) if found.verdict and not refused else ""
    status = settled_status(job, phase, message, now)
    fresh = phase in _ENDS and is_new(job, phase)
    return Plan(
        status=status,
        delete=tuple(
            Delete(resource, job.namespace, metadata(child)["name"], uid_of(child))
            for resource in (*WORKLOADS, *((SERVICES, PVCS) if refused else ()))
            for child in world.children(resource)
            if is_controlled_by(child, job.raw) and not is_deleting(child) and uid_of(child) != spared
        ),
        emit=(_event(_ENDS[phase][0], job, status),) if fresh else (),
        record=(_end_record(phase, message),) if fresh else (),
    )


def _events(job: Job, status: GryviaAIJobStatus, found: Workload) -> tuple[DomainEvent, ...]:
    """At the pass that changes the phase. Each workload (a preempted job gets a new one) starts anew."""
    phase = status.phase
    if phase is None or phase == job.status.phase:
        return ()
    starts = job.status.phase != "Running" and phase in ("Running", "Succeeded")
    started = (_event(JobStarted, job, status, uid_of(found.raw)),) if starts else ()
    return (*started, _event(_ENDS[phase][0], job, status)) if phase in _ENDS else started


def _event(kind: type[JobEvent], job: Job, status: GryviaAIJobStatus, transition: str = "") -> JobEvent:
    return kind(
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        generation=job.generation,
        transition=transition,
        phase=status.phase or "",
        message=status.message or "",
        metrics=(status.metrics.values if status.metrics else None) or {},
    )


def _records(job: Job, found: Workload, status: GryviaAIJobStatus) -> tuple[Record, ...]:
    """For kubectl describe: how it ended, and what keeps a pod from running."""
    if status.phase in _ENDS:
        return (_end_record(status.phase, status.message),) if status.phase != job.status.phase else ()
    reason, message = blocked(job, found)
    return (Record(reason, message, "Warning"),) if reason and status.message != job.status.message else ()


def _end_record(phase: str, message: str | None) -> Record:
    _, severity, words = _ENDS[phase]
    return Record(phase, message or words, severity)


def _refused(refusal: Refusal) -> str:
    if refusal.may_pass or refusal.reason == "NameCollision":
        return f"{refusal.reason}: {refusal.message}"
    return f"{refusal.reason}: the API server refused {refusal.resource.kind} {refusal.name}: {refusal.message}"


def _end_message(job: Job, found: Workload, phase: JobPhase) -> str:
    """What whoever set the phase said. If they said nothing, ours still stands there, about a state that is over."""
    said = job.status.message or ""
    if is_new(job, phase) and said == active_message(job, found):
        said = ""
    return said or ("cancelled by status.phase" if phase == "Cancelled" else "")
