"""What a pod says about itself: is it ready, why does it not run, how did its container end.

Every service that makes pods asks these questions, so they are answered here once, from the JSON as it is. A pod is seen
with the one container that does the work; sidecars have no say. Indexes come from the Job's or the StatefulSet's label, and
of several pods with one index the newest is the attempt that counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gryvia_common.kube.children import is_controlled_by
from gryvia_common.kube.objects import Json, annotations_of, is_deleting, key_of, labels_of, metadata, uid_of
from gryvia_common.kube.templates import GPU

JOB_INDEX = "batch.kubernetes.io/job-completion-index"
SET_INDEX = "apps.kubernetes.io/pod-index"
TERMINATION_LIMIT = 4096
TEXT_LIMIT = 300
PULL_ERRORS = frozenset({"ErrImagePull", "ImagePullBackOff"})
STUCK = PULL_ERRORS | {
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
}


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod, `raw` as the API gives it, and the name of the container that does the work."""

    raw: Json
    container: str

    @property
    def name(self) -> str:
        return key_of(self.raw).name

    @property
    def index(self) -> int:
        """Completion index or ordinal; 0 of a pod that has none."""
        labels = labels_of(self.raw)
        marks = (labels.get(JOB_INDEX), annotations_of(self.raw).get(JOB_INDEX), labels.get(SET_INDEX))
        texts = (*marks, self.name.rpartition("-")[2])
        return next((int(text) for text in texts if text and text.isdigit()), 0)

    @property
    def phase(self) -> str:
        return str(self._status.get("phase") or "Pending")

    @property
    def ready(self) -> bool:
        return self.phase == "Running" and not is_deleting(self.raw) and self._condition("Ready") == "True"

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def disrupted(self) -> bool:
        """Ended by the infrastructure (drain, eviction, preemption, lost node), not by its own fault."""
        return self._condition("DisruptionTarget") == "True"

    @property
    def unschedulable(self) -> str:
        """Why no node takes it, empty when one does or nobody has said yet."""
        if self._condition("PodScheduled") != "False":
            return ""
        return (
            self._condition("PodScheduled", "message") or self._condition("PodScheduled", "reason") or "no reason given"
        )

    @property
    def node(self) -> str:
        """The node it takes room on, empty without one and once it has ended."""
        return "" if self.ended else str(self._spec.get("nodeName") or "")

    @property
    def gpus(self) -> int:
        limits = ((one.get("resources") or {}).get("limits") or {} for one in self._spec.get("containers") or ())
        return sum(int(limit.get(GPU) or 0) for limit in limits)

    @property
    def waiting(self) -> Json:
        """{reason, message} of a container that does not run yet."""
        return self._state.get("waiting") or {}

    @property
    def terminated(self) -> Json:
        """{exitCode, reason, message, …} of a container that has ended."""
        return self._state.get("terminated") or {}

    @property
    def termination_message(self) -> str:
        return str(self.terminated.get("message") or "")

    @property
    def started_at(self) -> datetime | None:
        text = (self._state.get("running") or self.terminated).get("startedAt")
        moment = datetime.fromisoformat(text) if text else None
        # A container that could not be started is said to have started in 1970.
        return moment if moment and moment.year > 1970 else None

    @property
    def image(self) -> str:
        wanted: Iterable[Json] = self._spec.get("containers") or ()
        own = next((one for one in wanted if one.get("name") == self.container), {})
        return str(self._container.get("image") or own.get("image") or "")

    @property
    def restarts(self) -> int:
        return int(self._container.get("restartCount") or 0)

    @property
    def attempt(self) -> str:
        """One run of the container: another pod or a restart in place is another attempt."""
        return f"{uid_of(self.raw)}/{self.restarts}"

    @property
    def _spec(self) -> Json:
        return self.raw.get("spec") or {}

    @property
    def _status(self) -> Json:
        return self.raw.get("status") or {}

    @property
    def _container(self) -> Json:
        statuses: Iterable[Json] = self._status.get("containerStatuses") or ()
        return next((one for one in statuses if one.get("name") == self.container), {})

    @property
    def _state(self) -> Json:
        return self._container.get("state") or {}

    def _condition(self, type: str, field: str = "status") -> str:
        conditions: Iterable[Json] = self._status.get("conditions") or ()
        return str(next((one for one in conditions if one["type"] == type), {}).get(field) or "")


def pods_of(workload: Json, pods: Iterable[Json], container: str) -> tuple[Pod, ...]:
    """The pods that belong to this very workload (by uid: those of one deleted before may live on), by index."""
    mine = (Pod(raw, container) for raw in pods if is_controlled_by(raw, workload))
    return tuple(sorted(mine, key=lambda pod: (pod.index, pod.name)))


def newest(pods: Iterable[Pod]) -> Pod | None:
    return max(pods, key=lambda pod: (str(metadata(pod.raw).get("creationTimestamp") or ""), pod.name), default=None)


def lead(pods: Sequence[Pod]) -> Pod | None:
    """The newest attempt of the lowest index: the one that speaks for the run."""
    lowest = min((pod.index for pod in pods), default=0)
    return newest(pod for pod in pods if pod.index == lowest)


def trouble(pods: Sequence[Pod], before: str = "") -> tuple[str, str]:
    """Reason and sentence of what keeps a pod from running, empty when nothing does. `before`: the sentence as it was; the
    kubelet goes back and forth between a pull error and its back-off, and the error is kept as it says more."""
    for pod in pods:
        if pod.unschedulable:
            return "Unschedulable", f"pod {pod.name} fits no node: {shortened(pod.unschedulable)}"
    for pod in pods:
        if pod.waiting.get("reason") in STUCK:
            return _stuck(pod, before)
    return "", ""


def last_words(pod: Pod, hints: Mapping[str, str]) -> str:
    """How a pod that failed did: exit code, and what `hints` has for the reason, else the last line it left. Results that it
    had handed on before (a JSON object) are no last words."""
    ended = pod.terminated
    if not ended:
        reason = (pod.raw.get("status") or {}).get("reason")
        return f"pod {pod.name} failed: {reason}" if reason else ""
    text = f"pod {pod.name} ended with exit code {ended.get('exitCode')}"
    lines = [line.strip() for line in pod.termination_message.splitlines() if line.strip()]
    handed_on = any(result(pod.termination_message))
    said = hints.get(str(ended.get("reason"))) or (lines[-1] if lines and not handed_on else "")
    return f"{text}: {shortened(said)}" if said else text


def result(message: str) -> tuple[Json, str]:
    """The JSON object that a termination message is (a step's outputs, last metrics), else nothing; and a note when it was one
    but got cut."""
    if not message.strip().startswith("{"):
        return {}, ""
    try:
        found: Json = json.loads(message)
    except ValueError:
        cut = len(message.encode()) >= TERMINATION_LIMIT
        return {}, f"the termination message was cut at {TERMINATION_LIMIT} bytes and is not read" if cut else ""
    return found, ""


def shortened(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "…"


def _stuck(pod: Pod, before: str) -> tuple[str, str]:
    reason, detail = str(pod.waiting["reason"]), shortened(str(pod.waiting.get("message") or ""))
    if reason not in PULL_ERRORS:
        said = f"pod {pod.name} cannot start: {reason}"
        # A crash loop names its growing back-off in the message: saying it would be a write a time.
        return reason, said if not detail or reason == "CrashLoopBackOff" else f"{said}: {detail}"
    stem = f"pod {pod.name}: image {pod.image} cannot be pulled"
    if reason == "ImagePullBackOff" and before.startswith(stem):
        return "ImagePullBackOff", before
    return "ImagePullBackOff", f"{stem}: {detail}" if detail and reason == "ErrImagePull" else stem
