"""From what is observed to the phase and its reason, pure.

    "" -> Pending -> Scheduling -> Running -> Succeeded | Failed
                       Queued (Kueue has not admitted it, or a quota holds it)

Running is never left for anything but an end: a job whose pods restart is still the job that runs. Queued by somebody else,
Preempted and the ends are not derived here, they are respected (decide).
"""

from __future__ import annotations

from gryvia_common.kinds.aijob import JobPhase
from gryvia_common.kube.pods import last_words, trouble
from gryvia_common.kube.workloads import Verdict, Workload
from gryvia_jobs.workload import Job

FINAL: frozenset[str] = frozenset({"Succeeded", "Failed", "Rejected", "Cancelled"})
PARKED: frozenset[str] = FINAL | {"Preempted"}
HINTS = {
    "OOMKilled": "it ran out of memory; raise spec.resources.limits.memory",
    "DeadlineExceeded": "it ran longer than spec.timeout allows",
}
NOTES = " ["


def state(job: Job, found: Workload) -> tuple[JobPhase, str]:
    """Phase and reason of a job with a workload."""
    verdict = found.verdict
    if verdict is None:
        return _active_phase(job, found), active_message(job, found)
    return ("Succeeded", "") if verdict.succeeded else ("Failed", _failure_message(found, verdict))


def with_notes(message: str, notes: tuple[str, ...]) -> str:
    """The reason for the phase, then what is wrong with the metrics."""
    said = "; ".join(notes)
    return f"{message}{NOTES}{said}]" if message and said else message or said


def blocked(job: Job, found: Workload) -> tuple[str, str]:
    """Reason and sentence of what keeps a pod from running, empty when nothing does."""
    return trouble(found.pods, before=(job.status.message or "").partition(NOTES)[0])


def active_message(job: Job, found: Workload) -> str:
    """The reason for the phase of a job that has not ended; empty when all goes its way."""
    if found.suspended and found.queue:
        return f"waits for Kueue to admit it (LocalQueue {found.queue})"
    if found.suspended:
        return "suspended; set spec.suspend to false to let it run"
    return blocked(job, found)[1] or _retrying(found)


def _active_phase(job: Job, found: Workload) -> JobPhase:
    if job.status.phase == "Running" or found.started:
        return "Running"
    if found.suspended:
        return "Queued" if found.queue else "Pending"
    if not found.pods or any(pod.unschedulable for pod in found.pods):
        return "Pending"
    return "Scheduling"


def _retrying(found: Workload) -> str:
    """What became of the last pod, until the next one is ready."""
    last = found.last_failed
    if found.ready or last is None:
        return ""
    if last.disrupted:
        return f"pod {last.name} was lost with its node or evicted; it is replaced and no retry is used"
    said = last_words(last, HINTS)
    retried = said and found.failures <= found.retry_limit
    return f"retry {found.failures} of {found.retry_limit}; {said}" if retried else said


def _failure_message(found: Workload, verdict: Verdict) -> str:
    """The Job's reason, what it means, and the last words of the pod that failed."""
    pod = found.last_fault
    reason = f"{verdict.reason}: {HINTS.get(verdict.reason) or verdict.message}".rstrip(": ")
    return "; ".join(part for part in (reason, last_words(pod, HINTS) if pod else "") if part)
