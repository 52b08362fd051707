"""From what is observed to the phase and its reason, pure.

    "" -> Pending -> Scheduling -> Running -> Succeeded | Failed
                       Queued (Kueue has not admitted it, or a quota holds it)

Running is never left for anything but an end: a job whose pods restart is still the job that runs. Queued by somebody else,
Preempted and the ends are not derived here, they are respected (decide).
"""

from __future__ import annotations

from gryvia_common.kinds.aijob import JobPhase
from gryvia_jobs.observed import Observed, Pod
from gryvia_jobs.workload import QUEUE_LABEL, Job

FINAL: frozenset[str] = frozenset({"Succeeded", "Failed", "Rejected", "Cancelled"})
PARKED: frozenset[str] = FINAL | {"Preempted"}
STUCK: frozenset[str] = frozenset(
    {
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
    }
)
HINTS = {
    "OOMKilled": "it ran out of memory; raise spec.resources.limits.memory",
    "DeadlineExceeded": "it ran longer than spec.timeout allows",
}
TEXT_LIMIT = 300
NOTES = " ["


def with_notes(message: str, notes: tuple[str, ...]) -> str:
    """The reason for the phase, then what is wrong with the metrics."""
    said = "; ".join(notes)
    return f"{message}{NOTES}{said}]" if message and said else message or said


def active_phase(job: Job, found: Observed, queue: str) -> JobPhase:
    """The phase of a job that has not ended. `queue`: Kueue's LocalQueue, empty without."""
    if job.status.phase == "Running" or found.started:
        return "Running"
    if found.suspended:
        return "Queued" if queue_of(found) or queue else "Pending"
    if not found.pods or any(pod.unschedulable for pod in found.pods):
        return "Pending"
    return "Scheduling"


def queue_of(found: Observed) -> str:
    """The LocalQueue of the workload that is there."""
    labels = ((found.workload or {}).get("metadata") or {}).get("labels") or {}
    return str(labels.get(QUEUE_LABEL) or "")


def trouble(job: Job, found: Observed) -> tuple[str, str]:
    """Reason and sentence of what keeps a pod from running, empty when nothing does."""
    for pod in found.pods:
        if pod.unschedulable:
            return "Unschedulable", f"pod {pod.name} fits no node: {_short(pod.unschedulable)}"
    for pod in found.pods:
        if pod.waiting.get("reason") in STUCK:
            return _stuck(job, pod)
    return "", ""


def active_message(job: Job, found: Observed) -> str:
    """The reason for the phase of a job that has not ended; empty when all goes its way."""
    if found.suspended:
        queue = queue_of(found)
        if queue:
            return f"waits for Kueue to admit it (LocalQueue {queue})"
        return "suspended; set spec.suspend to false to let it run"
    return trouble(job, found)[1] or _retrying(found)


def _retrying(found: Observed) -> str:
    """What became of the last pod, until the next one is ready."""
    ended = [pod for pod in found.pods if pod.phase == "Failed"]
    if found.ready or not ended:
        return ""
    last = max(ended, key=lambda pod: pod.age_order)
    if last.disrupted:
        return f"pod {last.name} was lost with its node or evicted; it is replaced and no retry is used"
    limit = ((found.workload or {}).get("spec") or {}).get("backoffLimit", 0)
    said = _last_words(last)
    return f"retry {found.failures} of {limit}; {said}" if said and found.failures <= limit else said


def failure_message(found: Observed) -> str:
    """The Job's reason, what it means, and the last words of the pod that failed."""
    verdict = found.verdict
    if verdict is None:
        return ""
    parts = [f"{verdict.reason}: {HINTS.get(verdict.reason) or verdict.message}".rstrip(": ")]
    pod = found.last_failure()
    if pod is not None:
        parts.append(_last_words(pod))
    return "; ".join(part for part in parts if part)


def _last_words(pod: Pod) -> str:
    ended = pod.terminated
    if not ended:
        reason = (pod.raw.get("status") or {}).get("reason") or ""
        return f"pod {pod.name} failed: {reason}" if reason else ""
    text = f"pod {pod.name} ended with exit code {ended.get('exitCode')}"
    hint = HINTS.get(str(ended.get("reason")))
    lines = [line.strip() for line in str(ended.get("message") or "").splitlines() if line.strip()]
    said = hint or (lines[-1] if lines else "")
    return f"{text}: {_short(said)}" if said else text


def _stuck(job: Job, pod: Pod) -> tuple[str, str]:
    """The kubelet goes back and forth between the pull error and its back-off; the error is kept, it says more."""
    reason, detail = str(pod.waiting["reason"]), _short(str(pod.waiting.get("message") or ""))
    image = pod.container.get("image") or job.spec.image
    if reason not in ("ErrImagePull", "ImagePullBackOff"):
        said = f"pod {pod.name} cannot start: {reason}"
        # A crash loop names its growing back-off in the message: saying it would be a write a time.
        return reason, said if not detail or reason == "CrashLoopBackOff" else f"{said}: {detail}"
    stem = f"pod {pod.name}: image {image} cannot be pulled"
    before = (job.status.message or "").partition(NOTES)[0]
    if reason == "ImagePullBackOff" and before.startswith(stem):
        return "ImagePullBackOff", before
    return "ImagePullBackOff", f"{stem}: {detail}" if detail and reason == "ErrImagePull" else stem


def _short(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "…"
