"""What the cluster shows of a job: its workload, its pods, and what they say about each other.

Only what belongs to the job by owner reference counts, and only pods of the workload that is there now: after a workload
was removed and made again its old pods may live on for a while.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kube.children import is_controlled_by
from gryvia_common.kube.objects import Json, annotations_of, is_deleting, labels_of, metadata, uid_of
from gryvia_common.kube.resources import JOBS, PODS, STATEFUL_SETS, Resource
from gryvia_common.runtime.world import World
from gryvia_jobs.workload import CONTAINER, GPU, Job

INDEX_KEY = "batch.kubernetes.io/job-completion-index"
SET_INDEX_KEY = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of the workload; `raw` for what is asked of it rarely."""

    raw: Json
    name: str
    index: int
    phase: str
    conditions: dict[str, Json]
    container: Json

    @property
    def ready(self) -> bool:
        return self.phase == "Running" and not is_deleting(self.raw) and self._is("Ready")

    @property
    def disrupted(self) -> bool:
        """Ended by the infrastructure (drain, eviction, preemption, lost node), not by its own fault."""
        return self._is("DisruptionTarget")

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def unschedulable(self) -> str:
        """Why no node takes it, empty when one does or nobody has said yet."""
        scheduled = self.conditions.get("PodScheduled") or {}
        return str(scheduled.get("message") or scheduled.get("reason")) if scheduled.get("status") == "False" else ""

    @property
    def waiting(self) -> Json:
        return (self.container.get("state") or {}).get("waiting") or {}

    @property
    def terminated(self) -> Json:
        state: Json = self.container.get("state") or {}
        return state.get("terminated") or {}

    @property
    def node(self) -> str:
        return str((self.raw.get("spec") or {}).get("nodeName") or "") if not self.ended else ""

    @property
    def restarts(self) -> int:
        return int(self.container.get("restartCount") or 0)

    @property
    def attempt(self) -> str:
        """One run of the container: another pod or a restart in place is another attempt."""
        return f"{uid_of(self.raw)}/{self.restarts}"

    @property
    def gpus(self) -> int:
        containers = (self.raw.get("spec") or {}).get("containers") or []
        return sum(int(((one.get("resources") or {}).get("limits") or {}).get(GPU) or 0) for one in containers)

    @property
    def started_at(self) -> datetime | None:
        state: Json = self.container.get("state") or {}
        text = (state.get("running") or state.get("terminated") or {}).get("startedAt")
        moment = parse_timestamp(text) if text else None
        # A container that could not be started is said to have started in 1970.
        return moment if moment and moment.year > 1970 else None

    @property
    def age_order(self) -> tuple[str, str]:
        return str(metadata(self.raw).get("creationTimestamp") or ""), self.name

    def _is(self, condition: str) -> bool:
        return (self.conditions.get(condition) or {}).get("status") == "True"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a batch Job ended."""

    succeeded: bool
    reason: str
    message: str
    at: str


@dataclass(frozen=True, slots=True)
class Observed:
    """`workload` None: there is none, or it is being deleted."""

    workload: Json | None = None
    resource: Resource = JOBS
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
        return bool(self.workload and (self.workload.get("spec") or {}).get("suspend"))

    @property
    def wanted(self) -> int:
        """Pods there should be."""
        spec = (self.workload or {}).get("spec") or {}
        return int(spec.get("parallelism" if self.resource == JOBS else "replicas") or 1)

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
    def _status(self) -> Json:
        return (self.workload or {}).get("status") or {}

    def lead(self) -> Pod | None:
        """The pod whose log speaks for the run: the newest attempt of the lowest index, a succeeded one once the Job is."""
        verdict = self.verdict
        pods = [pod for pod in self.pods if pod.phase == "Succeeded"] if verdict and verdict.succeeded else self.pods
        if not pods:
            return None
        lowest = min(pod.index for pod in pods)
        return max((pod for pod in pods if pod.index == lowest), key=lambda pod: pod.age_order)

    def last_failure(self) -> Pod | None:
        failed = [pod for pod in self.pods if pod.phase == "Failed" and not pod.disrupted]
        return max(failed, key=lambda pod: pod.age_order, default=None)


def observe(job: Job, world: World) -> Observed:
    """The job's workload (there is at most one in use) with its pods."""
    for resource in (JOBS, STATEFUL_SETS):
        for workload in world.children(resource):
            if is_controlled_by(workload, job.raw) and not is_deleting(workload):
                pods = (_pod(raw) for raw in world.children(PODS) if is_controlled_by(raw, workload))
                return Observed(workload, resource, tuple(sorted(pods, key=lambda pod: (pod.index, pod.name))))
    return Observed()


def _pod(raw: Json) -> Pod:
    status: Json = raw.get("status") or {}
    statuses: Iterable[Json] = status.get("containerStatuses") or ()
    container = next((one for one in statuses if one.get("name") == CONTAINER), {})
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    return Pod(raw, metadata(raw)["name"], _index(raw), status.get("phase") or "Pending", conditions, container)


def _index(raw: Json) -> int:
    for text in (labels_of(raw).get(INDEX_KEY), annotations_of(raw).get(INDEX_KEY), labels_of(raw).get(SET_INDEX_KEY)):
        if text and text.isdigit():
            return int(text)
    tail = str(metadata(raw)["name"]).rpartition("-")[2]
    return int(tail) if tail.isdigit() else 0
