"""A job step: a GryviaAIJob, whose end is the attempt's.

Outputs stand in the termination message of a pod that succeeded, the lowest index first, and in annotations of the job. The
pods are the job's, not ours, so they are found by its label. The job may be seen to have succeeded a moment before its pods are.
"""

from __future__ import annotations

from datetime import timedelta

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kube.children import child_name, owner_of
from gryvia_common.kube.objects import Json, annotations_of, is_deleting, labels_of, metadata, uid_of
from gryvia_common.kube.pods import Pod, newest
from gryvia_common.kube.resources import GROUP, PODS
from gryvia_common.kube.templates import without_repeats
from gryvia_common.runtime.controller import Index, Selection
from gryvia_workflow.attempts import Attempt, End, Progress, made_at
from gryvia_workflow.outputs import Cut, reported

CONTAINER = "main"
JOB_LABEL = f"{GROUP}/job"
PODS_WAIT, PODS_LATE = timedelta(seconds=3), timedelta(seconds=60)
"""How long after the job's end its pods are waited for. The longer one where a pod was seen that has not ended: its end is late."""

_FAILURES = {"Failed": "the job failed", "Rejected": "the job was rejected", "Cancelled": "the job was cancelled"}


def _keys(pod: Json) -> list[str]:
    label = labels_of(pod).get(JOB_LABEL)
    return [f"{metadata(pod).get('namespace')}/{label}"] if label else []


POD_INDEX = Index("pods-of-a-job", PODS, _keys)


def pods_of(namespace: str, job: str) -> Selection:
    return Selection(POD_INDEX.name, f"{namespace}/{child_name(job)}")


def advance(attempt: Attempt) -> Progress:
    job = attempt.made(AI_JOB.resource, lambda: _manifest(attempt))
    if isinstance(job, Progress):
        return job
    if not attempt.begun:
        # Left behind by a crash. Its pods are seen once the status says that it runs; its end without them has no outputs.
        return Progress(child=attempt.child, made_at=made_at(job))
    status = job.get("status") or {}
    phase, said = status.get("phase") or "", str(status.get("message") or "")
    at = str(status.get("completionTime") or "")
    if phase == "Succeeded":
        return _succeeded(attempt, job, at)
    if phase in _FAILURES:
        end = End("failed", f"{_FAILURES[phase]}{': ' if said else ''}{said}", at=at, final=phase == "Cancelled")
        return Progress(end, child=attempt.child)
    if phase == "Preempted" and not is_deleting(job):
        # A preempted job may be admitted again; its place is taken by the next attempt.
        end = End("lost", f"the job was preempted{': ' if said else ''}{said}", at=at)
        return Progress(end, child=attempt.child, delete=attempt.remove(AI_JOB.resource, job))
    return Progress(child=attempt.child)


def _succeeded(attempt: Attempt, job: Json, at: str) -> Progress:
    selection = pods_of(attempt.workflow.namespace, attempt.child)
    found = attempt.world.select(selection.index, selection.key)
    pods = [Pod(raw, CONTAINER) for raw in found if (owner := owner_of(raw)) and owner.uid == uid_of(job)]
    succeeded = [pod for pod in pods if pod.phase == "Succeeded"]
    wait = PODS_WAIT if all(pod.ended for pod in pods) else PODS_LATE
    until = parse_timestamp(at) + wait if at else attempt.now
    if not succeeded and attempt.now < until:
        return Progress(child=attempt.child, again_at=until)
    speaker = newest(pod for pod in succeeded if pod.index == min(one.index for one in succeeded))
    try:
        said = reported(speaker.termination_message if speaker else "", annotations_of(job))
    except Cut as error:
        return Progress(End("failed", str(error), at=at), child=attempt.child)
    return Progress(End("succeeded", said.left_out, said.values, at), child=attempt.child)


def _manifest(attempt: Attempt) -> Json:
    """The template, with the parameters and the step's own names behind its variables."""
    template = attempt.payload()
    own = {
        **(attempt.workflow.spec.parameters or {}),
        "WORKFLOW_NAME": attempt.workflow.name,
        "WORKFLOW_STEP": attempt.step.name,
    }
    env = [*(template.get("env") or ()), *({"name": key, "value": value} for key, value in own.items())]
    return {
        "apiVersion": AI_JOB.resource.api_version,
        "kind": AI_JOB.name,
        "metadata": attempt.metadata(),
        "spec": {"type": "training", "gpus": 0, **template, "env": without_repeats(env)},
    }
