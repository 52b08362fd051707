"""The rest of a cluster: a Job controller and a node, in virtual time. Pods run as long and end as a scenario says, and have
the log it says. It acts on what is so when it looks, like its real counterparts, and knows nothing of the services."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from memory_cluster import Change, MemoryCluster
from virtual_time import BEGIN

from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kube.objects import Json, metadata, uid_of
from gryvia_common.kube.resources import JOBS, PODS

INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class Course:
    """How one pod runs: seconds until it ends (None: for ever), its exit code, what it says at which second, and its last words."""

    seconds: float | None = 4.0
    code: int = 0
    lines: Sequence[tuple[float, str]] = ()
    message: str = ""


Courses = Callable[[str, int, int], Course]
"""Job name, index and attempt (from 0) to the course of that pod; of a pod that belongs to no Job its own name."""


@dataclass
class Node:
    """Watches the cluster it is given."""

    cluster: MemoryCluster
    courses: Courses
    _started: dict[str, tuple[float, Course]] = field(default_factory=dict)
    _attempts: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster.watchers.append(self._seen)

    def logs(self, pod: str) -> bytes:
        """With the time of each line, as `timestamps=true` gives it."""
        begun, course = self._started.get(pod, (0.0, Course()))
        now = self._loop.time()
        said = [(begun + at, text) for at, text in course.lines if begun + at <= now]
        return "".join(
            f"{(BEGIN + timedelta(seconds=at)).strftime('%Y-%m-%dT%H:%M:%S')}.{int(at % 1 * 1e9):09d}Z {text}\n"
            for at, text in said
        ).encode()

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def _seen(self, change: Change) -> None:
        if change.plural == JOBS.plural and change.op != "deleted":
            self._loop.call_later(0.2, self._make_pods, change.key, change.uid)
        elif change.plural == PODS.plural and change.op == "created":
            pod = self.cluster.objects[PODS.plural, change.key.namespace, change.key.name]
            if not self._of_a_job(pod):
                course = self.courses(change.key.name, 0, 0)
                self._loop.call_later(0.5, self._start, change.key.name, change.key.namespace, course, None)

    def _of_a_job(self, pod: Json) -> bool:
        return any(ref["kind"] == JOBS.kind for ref in metadata(pod).get("ownerReferences") or ())

    def _job(self, key: Any, uid: str) -> Json | None:
        found = self.cluster.objects.get((JOBS.plural, *key))
        return found if found is not None and uid_of(found) == uid else None

    def _make_pods(self, key: Any, uid: str) -> None:
        job = self._job(key, uid)
        if job is None or job["spec"].get("suspend") or (job.get("status") or {}).get("conditions"):
            return
        for index in range(job["spec"]["completions"]):
            mine = self._pods(job, index)
            if any(pod["status"]["phase"] != "Failed" for pod in mine):
                continue
            self._make_pod(job, index)

    def _pods(self, job: Json, index: int | None = None) -> list[Json]:
        return [
            pod
            for pod in self.cluster.of(PODS)
            if self._of_a_job(pod)
            and metadata(pod)["ownerReferences"][0]["uid"] == uid_of(job)
            and (index is None or metadata(pod)["labels"][INDEX] == str(index))
        ]

    def _make_pod(self, job: Json, index: int) -> None:
        attempt = self._attempts[uid_of(job), index] = self._attempts.get((uid_of(job), index), -1) + 1
        template = job["spec"]["template"]
        name = f"{metadata(job)['name']}-{index}-{attempt}"
        meta = {
            "name": name,
            "namespace": metadata(job)["namespace"],
            "labels": {**template["metadata"]["labels"], INDEX: str(index)},
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": metadata(job)["name"],
                    "uid": uid_of(job),
                    "controller": True,
                }
            ],
        }
        pod = {"metadata": meta, "spec": template["spec"], "status": {"phase": "Pending"}}
        self.cluster.create(PODS, pod)
        course = self.courses(metadata(job)["name"], index, attempt)
        self._loop.call_later(0.3, self._start, name, meta["namespace"], course, job)

    def _start(self, name: str, namespace: str, course: Course, job: Json | None) -> None:
        if (PODS.plural, namespace, name) not in self.cluster.objects:
            return
        self._started[name] = (self._loop.time(), course)
        state = {"running": {"startedAt": self._now()}}
        self._patch(namespace, name, "Running", state, [{"type": "Ready", "status": "True"}])
        if course.seconds is not None:
            self._loop.call_later(course.seconds, self._end, name, namespace, course, job)

    def _end(self, name: str, namespace: str, course: Course, job: Json | None) -> None:
        pod = self.cluster.objects.get((PODS.plural, namespace, name))
        if pod is None or pod["status"]["phase"] != "Running":
            return
        begun = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
        reason = "Error" if course.code else "Completed"
        ended: Json = {"exitCode": course.code, "reason": reason, "startedAt": begun, "finishedAt": self._now()}
        if course.message:
            ended["message"] = course.message
        self._patch(namespace, name, "Failed" if course.code else "Succeeded", {"terminated": ended}, [])
        if job is not None:
            self._loop.call_later(0.1, self._conclude, job)

    def _patch(self, namespace: str, name: str, phase: str, state: Json, conditions: list[Json]) -> None:
        container = {"name": "main", "restartCount": 0, "ready": phase == "Running", "state": state}
        status = {"phase": phase, "conditions": conditions, "containerStatuses": [container]}
        self.cluster.change(PODS, namespace, name, {"status": status, "spec": {"nodeName": "node-1"}})

    def _conclude(self, job: Json) -> None:
        key = (metadata(job)["namespace"], metadata(job)["name"])
        live = self._job(key, uid_of(job))
        if live is None:
            return
        phases = [pod["status"]["phase"] for pod in self._pods(live)]
        done, failed = phases.count("Succeeded"), phases.count("Failed")
        status: Json = {"succeeded": done, "failed": failed}
        if done == live["spec"]["completions"]:
            status["completionTime"] = self._now()
            status["conditions"] = [_condition("Complete", "CompletionsReached", self._now())]
        elif failed > live["spec"]["backoffLimit"]:
            status["conditions"] = [_condition("Failed", "BackoffLimitExceeded", self._now())]
        self.cluster.change(JOBS, *key, {"status": status})

    def _now(self) -> str:
        return timestamp(BEGIN + timedelta(seconds=self._loop.time()))


def _condition(type: str, reason: str, at: str) -> Json:
    return {"type": type, "status": "True", "reason": reason, "message": "", "lastTransitionTime": at}
