"""A script step: one pod, locked down: no root, no privileges, no token, little CPU and memory."""

from __future__ import annotations

from gryvia_common.kube.objects import Json, annotations_of, is_deleting
from gryvia_common.kube.pods import Pod, last_words, trouble
from gryvia_common.kube.resources import PODS
from gryvia_workflow.attempts import Attempt, End, Progress, made_at
from gryvia_workflow.outputs import Cut, reported

CONTAINER = "main"
NOBODY = 65534
_HINTS = {"OOMKilled": "out of memory, a script step has 1Gi; use a job step for more"}


def advance(attempt: Attempt) -> Progress:
    raw = attempt.made(PODS, lambda: _manifest(attempt))
    if isinstance(raw, Progress):
        return raw
    pod = Pod(raw, CONTAINER)
    if not attempt.begun:
        return Progress(child=attempt.child, made_at=made_at(raw))
    if pod.phase == "Succeeded":
        return Progress(_succeeded(pod), child=attempt.child)
    if pod.phase == "Failed":
        return Progress(_failed(attempt, pod), child=attempt.child)
    _, said = trouble([pod], attempt.task.message) if not is_deleting(raw) else ("", "the pod is being deleted")
    return Progress(child=attempt.child, message=said)


def _succeeded(pod: Pod) -> End:
    at = str(pod.terminated.get("finishedAt") or "")
    try:
        said = reported(pod.termination_message, annotations_of(pod.raw))
    except Cut as error:
        return End("failed", str(error), at=at)
    return End("succeeded", said.left_out, said.values, at)


def _failed(attempt: Attempt, pod: Pod) -> End:
    status = pod.raw.get("status") or {}
    reason, at = str(status.get("reason") or ""), str(pod.terminated.get("finishedAt") or "")
    if reason == "DeadlineExceeded":
        return End("failed", f"timed out after {attempt.step.timeout_seconds} s", at=at)
    if pod.disrupted or not pod.terminated:
        # A pod that failed without a container that ended was never run: the node refused or lost it.
        said = f"{reason} {status.get('message') or ''}".strip() or "its node took it away"
        return End("lost", f"pod {pod.name}: {said}", at=at)
    return End("failed", last_words(pod, _HINTS), at=at)


def _manifest(attempt: Attempt) -> Json:
    script = attempt.payload()
    container = {
        "name": CONTAINER,
        "image": script.get("image"),
        "command": script.get("command"),
        **({"args": script["args"]} if script.get("args") else {}),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    timeout = attempt.step.timeout_seconds
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **({"activeDeadlineSeconds": timeout} if timeout > 0 else {}),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": attempt.metadata(), "spec": spec}
