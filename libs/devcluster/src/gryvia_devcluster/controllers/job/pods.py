"""The pods a Job makes: names, labels, the completion index and the tracking finalizer.

The finalizer is what keeps a finished pod until it has been counted; it is removed in the same pass that counts it.
"""

from __future__ import annotations

from gryvia_devcluster.controllers.actions import Action, Create, Merge, Remove
from gryvia_devcluster.controllers.podstate import pod_from_template
from gryvia_devcluster.types import Json

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_NAME_LIMIT = 63


def is_indexed(job: Json) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: Json) -> int | None:
    text = pod["metadata"].get("annotations", {}).get(INDEX)
    return int(text) if text is not None and text.isdecimal() else None


def failures_of_index(pod: Json) -> int:
    """How often this index had failed when the pod was made (counted against backoffLimitPerIndex)."""
    return int(pod["metadata"].get("annotations", {}).get(INDEX_FAILURES, "0"))


def is_tracked(pod: Json) -> bool:
    return TRACKING in pod["metadata"].get("finalizers", ())


def job_labels(job: Json) -> dict[str, str]:
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    return {
        "batch.kubernetes.io/job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "job-name": name,
        "controller-uid": uid,
    }


def create_pod(job: Json, index: int | None, index_failures: int | None = None) -> Create:
    pod = pod_from_template(job, job["spec"]["template"])
    meta, name = pod["metadata"], job["metadata"]["name"]
    meta["labels"].update(job_labels(job))
    meta["finalizers"] = [*meta.get("finalizers", ()), TRACKING]
    if index is None:
        meta["generateName"] = f"{name}-"
    else:
        meta["generateName"] = f"{name}-{index}-"
        meta["labels"][INDEX] = str(index)
        meta["annotations"][INDEX] = str(index)
        pod["spec"] = _with_index(pod["spec"], f"{name}-{index}"[:_NAME_LIMIT])
        if index_failures is not None:
            meta["annotations"][INDEX_FAILURES] = str(index_failures)
    return Create(pod, about=job)


def _with_index(spec: Json, hostname: str) -> Json:
    env = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}},
    }
    named = {**spec, "hostname": spec.get("hostname") or hostname}
    for group in ("initContainers", "containers"):
        if spec.get(group):
            named[group] = [_with_env(container, env) for container in spec[group]]
    return named


def _with_env(container: Json, env: Json) -> Json:
    present = container.get("env") or []
    if any(entry["name"] == env["name"] for entry in present):
        return container
    return {**container, "env": [*present, env]}


def release(pod: Json) -> Merge:
    """Take the tracking finalizer off a pod that has been counted, or never will be."""
    rest = [f for f in pod["metadata"].get("finalizers", ()) if f != TRACKING]
    return Merge(pod, {"metadata": {"finalizers": rest or None}})


def discard(job: Json, pods: list[Json]) -> list[Action]:
    """Delete pods that will not be counted."""
    actions: list[Action] = []
    for pod in pods:
        if is_tracked(pod):
            actions.append(release(pod))
        actions.append(Remove(pod, about=job))
    return actions
