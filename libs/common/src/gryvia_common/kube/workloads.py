"""What is true of any workload (Job, StatefulSet, Deployment) together with its pods.

Kubernetes counts in other places for each type: a Job wants `parallelism` pods and says in conditions how it ended, the others
want `replicas` and never end. Here it is one set of questions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gryvia_common.kube.objects import Json, labels_of
from gryvia_common.kube.pods import Pod, lead, newest
from gryvia_common.kube.resources import JOBS, Resource

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a batch Job ended."""

    succeeded: bool
    reason: str
    message: str
    at: str


@dataclass(frozen=True, slots=True)
class Workload:
    """`raw` empty: there is none, or it is being deleted."""

    resource: Resource = JOBS
    raw: Json = field(default_factory=dict)
    pods: tuple[Pod, ...] = ()

    @property
    def verdict(self) -> Verdict | None:
        for condition in self._status.get("conditions") or ():
            if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
                at = self._status.get("completionTime") or condition.get("lastTransitionTime") or ""
                reason, message = condition.get("reason") or "", condition.get("message") or ""
                return Verdict(condition["type"] == "Complete", reason, message, at)
        return None

    @property
    def suspended(self) -> bool:
        return bool(self._spec.get("suspend"))

    @property
    def queue(self) -> str:
        """Kueue's LocalQueue, empty without."""
        return labels_of(self.raw).get(QUEUE_LABEL) or ""

    @property
    def wanted(self) -> int:
        """Pods there should be."""
        return int(self._spec.get("parallelism" if self.resource == JOBS else "replicas") or 1)

    @property
    def ready(self) -> int:
        return sum(pod.ready for pod in self.pods)

    @property
    def started(self) -> bool:
        """A ready pod or a succeeded index."""
        return self.ready > 0 or int(self._status.get("succeeded") or 0) > 0

    @property
    def failures(self) -> int:
        """Failed pods as Kubernetes counts them against the retries: disruptions are not among them."""
        if self.resource == JOBS:
            return int(self._status.get("failed") or 0)
        return sum(pod.restarts for pod in self.pods)

    @property
    def unseen(self) -> int:
        """Pods that the Job counts as succeeded and that are not seen so. Each type comes on a watch of its own: that of the
        pods may be behind."""
        succeeded = sum(pod.phase == "Succeeded" for pod in self.pods)
        return max(int(self._status.get("succeeded") or 0) - succeeded, 0)

    @property
    def retry_limit(self) -> int:
        return int(self._spec.get("backoffLimit") or 0)

    @property
    def lead(self) -> Pod | None:
        """The pod that speaks for the run: of one that succeeded, a pod that did."""
        verdict = self.verdict
        return lead(
            [pod for pod in self.pods if pod.phase == "Succeeded"] if verdict and verdict.succeeded else self.pods
        )

    @property
    def last_failed(self) -> Pod | None:
        return newest(pod for pod in self.pods if pod.phase == "Failed")

    @property
    def last_fault(self) -> Pod | None:
        """The newest pod that failed by its own fault."""
        return newest(pod for pod in self.pods if pod.phase == "Failed" and not pod.disrupted)

    @property
    def _spec(self) -> Json:
        return self.raw.get("spec") or {}

    @property
    def _status(self) -> Json:
        return self.raw.get("status") or {}
