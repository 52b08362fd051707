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
from typing import cast

from pydantic import ValidationError

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
from gryvia_common.kinds.aijob import GryviaAIJobStatus, JobPhase
from gryvia_common.kinds.conditions import find_condition, set_condition, timestamp
from gryvia_common.kube.children import is_controlled_by
from gryvia_common.kube.objects import Json, is_deleting, key_of, metadata, uid_of
from gryvia_common.kube.resources import GROUP, JOBS, PVCS, SERVICES, STATEFUL_SETS, Resource
from gryvia_common.runtime.plan import Apply, Delete, Plan, Record
from gryvia_common.runtime.world import Refusal, World
from gryvia_jobs.observed import Observed, observe
from gryvia_jobs.phases import PARKED, active_message, active_phase, failure_message, queue_of, trouble
from gryvia_jobs.reporting import report
from gryvia_jobs.status import is_new, running_status, settled_status
from gryvia_jobs.validation import problems, without_effect
from gryvia_jobs.workload import (
    QUEUE_LABEL,
    Job,
    batch_job,
    claim,
    has_service,
    headless_service,
    stateful_set,
    workload_resource,
)

CANCEL = f"{GROUP}/cancel"
QUEUE_NAME = f"{GROUP}/queue-name"
FORBIDDEN_AGAIN = timedelta(seconds=30)
_EVENTS: dict[str, type[JobEvent]] = {
    "Succeeded": JobSucceeded,
    "Failed": JobFailed,
    "Cancelled": JobCancelled,
    "Rejected": JobRejected,
    "Preempted": JobPreempted,
}


def decide(kueue: bool, job: Job, world: World, now: datetime) -> Plan:
    """`kueue`: whether the Kueue integration is on."""
    if job.deleting:
        return Plan()
    phase = job.status.phase or "Pending"
    found = observe(job, world)
    ended = found.verdict is not None
    cancelled = job.annotations.get(CANCEL) == "true" and not (ended or phase in PARKED - {"Preempted"})
    if cancelled:
        return _put_away(job, world, "Cancelled", f"cancelled by annotation {CANCEL}", now)
    if phase in PARKED:
        return _put_away(job, world, phase, _end_message(job, found, phase), now)
    if phase == "Queued" and not _queued_by_kueue(kueue, job, found):
        return _held(job, world, now)
    if found.workload is None and (wrong := problems(job)):
        return _put_away(job, world, "Failed", "; ".join(wrong), now)
    return _run(kueue, job, found, world, now)


def invalid(raw: Json, message: str, now: datetime) -> Plan:
    """A spec that does not parse: the end of a job that has not begun; of one under way only the edit is refused."""
    status = _readable_status(raw)
    meta = metadata(raw)
    generation = int(meta.get("generation") or 1)
    if is_deleting(raw) or status.phase in PARKED:
        return Plan()
    seen: dict[str, object] = {"observed_generation": generation}
    if status.observed_generation is not None:
        seen["conditions"] = set_condition(
            status.conditions, "SpecApplied", "False", "InvalidSpec", message, now=now, generation=generation
        )
        return Plan(status=status.model_copy(update=seen))
    seen.update(phase="Failed", message=message, completion_time=timestamp(now))
    event = JobFailed(
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        uid=meta["uid"],
        generation=generation,
        phase="Failed",
        message=message,
    )
    return Plan(status=status.model_copy(update=seen), emit=(event,), record=(Record("Failed", message, "Warning"),))


def _readable_status(raw: Json) -> GryviaAIJobStatus:
    try:
        return GryviaAIJobStatus.model_validate(raw.get("status") or {})
    except ValidationError:
        return GryviaAIJobStatus()


def _run(kueue: bool, job: Job, found: Observed, world: World, now: datetime) -> Plan:
    """Make the children that are missing and say how far it is."""
    queue = _queue(kueue, job)
    applies = _children(job, found, queue)
    refusal = next((r for one in applies if (r := world.refusal(one.resource, metadata(one.manifest)["name"]))), None)
    if found.workload is None:
        if refusal is not None and refusal.reason != "Forbidden":
            return _put_away(job, world, "Failed", _refused(refusal), now)
        # What is about to be made counts already: its own first pass must not change the status again.
        found = Observed(applies[-1].manifest, applies[-1].resource)
    reported = report(job, found, world, now)
    if reported.unread:
        return Plan(actions=reported.actions)
    verdict = found.verdict
    if verdict is None:
        phase = active_phase(job, found, queue)
        message = active_message(job, found)
    else:
        phase = "Succeeded" if verdict.succeeded else "Failed"
        message = "" if verdict.succeeded else failure_message(found)
    if refusal is not None:
        message = _refused(refusal)
    ignored = without_effect(job, kueue=kueue)
    status = running_status(job, found, phase, message, reported, ignored, now)
    return Plan(
        status=status,
        apply=() if verdict else applies,
        emit=_events(job, status, found),
        record=_records(job, found, status),
        actions=() if verdict else reported.actions,
        again_at=now + FORBIDDEN_AGAIN if refusal else None,
    )


def _children(job: Job, found: Observed, queue: str) -> tuple[Apply, ...]:
    """The workload last: its pods need the claim, and its name in the DNS."""
    applies = []
    if job.spec.storage:
        applies.append(Apply(PVCS, claim(job), create_only=True))
    if has_service(job):
        applies.append(Apply(SERVICES, headless_service(job)))
    if found.workload is None:
        resource = workload_resource(job.spec)
        manifest = stateful_set(job) if resource == STATEFUL_SETS else batch_job(job, queue)
        applies.append(Apply(resource, manifest, create_only=True))
    elif found.resource == JOBS and not queue_of(found) and found.suspended != job.spec.suspend:
        applies.append(Apply(JOBS, _suspended(found.workload, job.spec.suspend)))
    return tuple(applies)


def _suspended(workload: Json, suspend: bool) -> Json:
    """The one field that is synced, alone: the rest of the Job was created, not applied, and stays untouched."""
    key = key_of(workload)
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"suspend": suspend},
    }


def _queue(kueue: bool, job: Job) -> str:
    """The LocalQueue: by Kueue's own label always, by our field and annotation where the integration is on."""
    if workload_resource(job.spec) == STATEFUL_SETS:
        return ""
    ours = (job.spec.queue_name or job.annotations.get(QUEUE_NAME) or "") if kueue else ""
    return job.labels.get(QUEUE_LABEL) or ours


def _queued_by_kueue(kueue: bool, job: Job, found: Observed) -> bool:
    """Only we set KueueAdmitted; without it, Queued is the word of a quota, also for a job that is meant for Kueue."""
    return (
        bool(_queue(kueue, job) or queue_of(found))
        and find_condition(job.status.conditions, "KueueAdmitted") is not None
    )


def _held(job: Job, world: World, now: datetime) -> Plan:
    """Queued by a quota: nothing is made, and what a race has made already is taken back."""
    return Plan(
        status=settled_status(job, "Queued", job.status.message or "", now),
        delete=_deletes(job, world, (JOBS, STATEFUL_SETS)),
    )


def _put_away(job: Job, world: World, phase: str, message: str, now: datetime) -> Plan:
    """An end that is not the workload's own, or one reached before: no workload that still runs, no new child."""
    resources: tuple[Resource, ...] = (JOBS, STATEFUL_SETS)
    if phase == "Rejected":
        resources = (*resources, SERVICES, PVCS)
    status = settled_status(job, cast(JobPhase, phase), message, now)
    fresh = is_new(job, phase)
    record = Record(phase, message or phase, "Normal" if phase in ("Succeeded", "Cancelled") else "Warning")
    return Plan(
        status=status,
        delete=_deletes(job, world, resources),
        emit=(_event(_EVENTS[phase], job, status),) if fresh else (),
        record=(record,) if fresh else (),
    )


def _deletes(job: Job, world: World, resources: tuple[Resource, ...]) -> tuple[Delete, ...]:
    """Ours only, by uid; a workload that has ended by itself stays for its logs, unless the job was refused."""
    kept = observe(job, world)
    spared = uid_of(kept.workload) if kept.workload and kept.verdict and PVCS not in resources else ""
    return tuple(
        Delete(resource, job.namespace, metadata(child)["name"], uid_of(child))
        for resource in resources
        for child in world.children(resource)
        if is_controlled_by(child, job.raw) and not is_deleting(child) and uid_of(child) != spared
    )


def _events(job: Job, status: GryviaAIJobStatus, found: Observed) -> tuple[DomainEvent, ...]:
    """At the pass that changes the phase. Each workload (a preempted job gets a new one) starts anew."""
    if status.phase == job.status.phase:
        return ()
    events: list[DomainEvent] = []
    attempt = uid_of(found.workload or {})
    if job.status.phase != "Running" and status.phase in ("Running", "Succeeded"):
        events.append(_event(JobStarted, job, status, attempt))
    if status.phase in _EVENTS:
        events.append(_event(_EVENTS[status.phase], job, status))
    return tuple(events)


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


def _records(job: Job, found: Observed, status: GryviaAIJobStatus) -> tuple[Record, ...]:
    """For kubectl describe: how it ended, and what keeps a pod from running."""
    if status.phase != job.status.phase and status.phase in ("Succeeded", "Failed"):
        message = status.message or "the job has succeeded"
        return (Record(status.phase, message, "Normal" if status.phase == "Succeeded" else "Warning"),)
    reason, message = trouble(job, found)
    if reason and status.message != job.status.message:
        return (Record(reason, message, "Warning"),)
    return ()


def _refused(refusal: Refusal) -> str:
    if refusal.reason in ("NameCollision", "Forbidden"):
        return f"{refusal.reason}: {refusal.message}"
    return f"{refusal.reason}: the API server refused {refusal.resource.kind} {refusal.name}: {refusal.message}"


def _end_message(job: Job, found: Observed, phase: str) -> str:
    """What whoever set the phase said. If they said nothing, ours still stands there, about a state that is over."""
    said = job.status.message or ""
    if is_new(job, phase) and said == active_message(job, found):
        said = ""
    return said or ("cancelled by status.phase" if phase == "Cancelled" else "")
