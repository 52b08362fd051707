"""The children of a job as manifests: the batch Job or the StatefulSet, the headless Service, the claim.

They are made once, from the spec as it is at that moment; the annotation gryvia.io/spec-hash remembers which spec that was, so
that a later change can be named instead of being ignored without a word. Names end where Kubernetes' own names built from
them would no longer fit: `<job>-<index>` is a host name, and a StatefulSet's name becomes a label value with a hash.
"""

from __future__ import annotations

import hashlib
import re

import orjson

from gryvia_common.kinds.aijob import AI_JOB, GryviaAIJobSpec, GryviaAIJobStatus
from gryvia_common.kinds.core import wire_list
from gryvia_common.kube.children import child_name, owned_metadata, template_metadata
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import GROUP, JOBS, PVCS, SERVICES, STATEFUL_SETS, Resource
from gryvia_common.runtime.world import Object
from gryvia_jobs.environment import JOB_INDEX, MASTER_PORT, SET_INDEX, environment, nodes

Job = Object[GryviaAIJobSpec, GryviaAIJobStatus]

CONTAINER = "main"
DATA, DATA_PATH = "gryvia-data", "/data"
SHM, SHM_PATH = "gryvia-shm", "/dev/shm"
GPU = "nvidia.com/gpu"
GPU_NODE = f"{GROUP}/gpu"
JOB_LABEL, TYPE_LABEL = f"{GROUP}/job", f"{GROUP}/type"
SPEC_HASH = f"{GROUP}/spec-hash"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
STATEFUL_SET_NAME_LIMIT = 52
_SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def workload_resource(spec: GryviaAIJobSpec) -> Resource:
    kind = spec.workload_kind or ("statefulset" if spec.type == "inference" else "job")
    return STATEFUL_SETS if kind == "statefulset" else JOBS


def workload_name(job: Job, resource: Resource) -> str:
    if resource == STATEFUL_SETS:
        return _within(f"{job.name}-training", STATEFUL_SET_NAME_LIMIT)
    return _within(job.name, 63 - len(f"-{nodes(job.spec) - 1}"))


def service_name(job: Job) -> str:
    return child_name(job.name, "headless")


def claim_name(job: Job) -> str:
    return child_name(job.name, "data")


def has_service(job: Job) -> bool:
    """A Service's name must start with a letter; a job on one pod that is called 7b-eval does without."""
    return _SERVICE_NAME.fullmatch(service_name(job)) is not None


def spec_hash(spec: GryviaAIJobSpec) -> str:
    """Of what the user wrote, without what may change later (suspend) and without defaults, which an upgrade may add."""
    said = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"suspend"})
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def batch_job(job: Job, queue: str) -> Json:
    """batch/v1 Job, Indexed, one index a pod. `queue`: Kueue's LocalQueue, empty without."""
    spec = job.spec
    count = nodes(spec)
    name = workload_name(job, JOBS)
    disruption = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    body: Json = {
        "completionMode": "Indexed",
        "parallelism": count,
        "completions": count,
        "backoffLimit": spec.retry_limit,
        "podFailurePolicy": {"rules": [disruption]},
        "suspend": spec.suspend or bool(queue),
        "template": _template(job, _master(job, name), JOB_INDEX, "Never"),
    }
    if spec.timeout:
        body["activeDeadlineSeconds"] = seconds(spec.timeout)
    if spec.distributed and spec.distributed.enabled and spec.distributed.elastic:
        body["successPolicy"] = {"rules": [{"succeededCount": spec.distributed.elastic.min_nodes}]}
    return _child(job, JOBS, name, {"spec": body}, {QUEUE_LABEL: queue} if queue else {})


def stateful_set(job: Job) -> Json:
    """All pods start at once: the first of a distributed run waits for the others before it is of any use."""
    name = workload_name(job, STATEFUL_SETS)
    template = _template(job, _master(job, name), SET_INDEX, "Always")
    template["metadata"]["annotations"][f"{GROUP}/env-version"] = "2"
    body = {
        "replicas": nodes(job.spec),
        "serviceName": service_name(job),
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {JOB_LABEL: label_value(job)}},
        "template": template,
    }
    return _child(job, STATEFUL_SETS, name, {"spec": body})


def headless_service(job: Job) -> Json:
    body = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {JOB_LABEL: label_value(job)},
        "ports": [{"name": "master", "port": MASTER_PORT, "targetPort": MASTER_PORT, "protocol": "TCP"}],
    }
    return _child(job, SERVICES, service_name(job), {"spec": body})


def claim(job: Job) -> Json:
    """Several pods may be on several nodes, so they need a volume that can be mounted on all of them."""
    body = {
        "accessModes": ["ReadWriteMany" if nodes(job.spec) > 1 else "ReadWriteOnce"],
        "storageClassName": job.spec.storage,
        "resources": {"requests": {"storage": str(job.spec.storage_request)}},
    }
    return _child(job, PVCS, claim_name(job), {"spec": body})


def label_value(job: Job) -> str:
    return child_name(job.name)


_PARTS = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?")


def seconds(timeout: str) -> int:
    """90m, 24h, 7d, 1d12h as seconds. ValueError for everything else, zero among it."""
    match = _PARTS.fullmatch(timeout)
    total = (
        sum(int(part or 0) * unit for part, unit in zip(match.groups(), (86400, 3600, 60, 1), strict=True))
        if match
        else 0
    )
    if total <= 0:
        raise ValueError(f"{timeout!r} is not a duration like 90m, 24h, 7d or 1d12h")
    return total


def _child(job: Job, resource: Resource, name: str, body: Json, labels: dict[str, str] | None = None) -> Json:
    meta = owned_metadata(job.raw, AI_JOB.resource, name, {**_labels(job), **(labels or {})})
    if resource in (JOBS, STATEFUL_SETS):
        meta["annotations"][SPEC_HASH] = spec_hash(job.spec)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body}


def _labels(job: Job) -> dict[str, str]:
    """Ours, and those of the AIJob that say what it is part of (tuner, workflow, step, run, team, tenant, fork, …)."""
    inherited = {key: value for key, value in job.labels.items() if key.startswith(f"{GROUP}/")}
    return {**inherited, JOB_LABEL: label_value(job), TYPE_LABEL: job.spec.type}


def _template(job: Job, master: str, index_path: str, restart: str) -> Json:
    spec = job.spec
    container: Json = {
        "name": CONTAINER,
        "image": spec.image,
        "env": environment(spec, master, index_path),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    volumes, mounts = _volumes(job)
    selector = dict(spec.node_selector or {})
    if spec.gpus > 0 and spec.gpu_type not in (None, "", "any"):
        selector[GPU_NODE] = str(spec.gpu_type)
    optional = {
        "imagePullPolicy": spec.image_pull_policy,
        "command": spec.command,
        "args": spec.args,
        "workingDir": spec.working_dir,
        "resources": _resources(spec),
        "volumeMounts": mounts,
    }
    container.update({key: value for key, value in optional.items() if value})
    if nodes(spec) > 1:
        container["ports"] = [{"name": "master", "containerPort": MASTER_PORT, "protocol": "TCP"}]
    pod: Json = {"restartPolicy": restart, "enableServiceLinks": False, "containers": [container]}
    if restart == "Never" and has_service(job):
        pod["subdomain"] = service_name(job)
    placement = {
        "nodeSelector": selector,
        "tolerations": wire_list(spec.tolerations),
        "affinity": spec.affinity,
        "volumes": volumes,
    }
    pod.update({key: value for key, value in placement.items() if value})
    return {"metadata": template_metadata(job.raw, AI_JOB.resource, _labels(job)), "spec": pod}


def _volumes(job: Job) -> tuple[list[Json], list[Json]]:
    volumes, mounts = wire_list(job.spec.volumes), wire_list(job.spec.volume_mounts)
    if job.spec.storage:
        volumes.append({"name": DATA, "persistentVolumeClaim": {"claimName": claim_name(job)}})
        mounts.append({"name": DATA, "mountPath": DATA_PATH})
    if job.spec.gpus > 0 and all(mount["mountPath"].rstrip("/") != SHM_PATH for mount in mounts):
        volumes.append({"name": SHM, "emptyDir": {"medium": "Memory"}})
        mounts.append({"name": SHM, "mountPath": SHM_PATH})
    return volumes, mounts


def _resources(spec: GryviaAIJobSpec) -> Json:
    """The user's resources with exactly `gpus` GPUs, whatever they say about GPUs themselves."""
    resources = spec.resources.wire() if spec.resources else {}
    for part in ("limits", "requests"):
        kept = {name: value for name, value in (resources.get(part) or {}).items() if name != GPU}
        if part == "limits" and spec.gpus > 0:
            kept[GPU] = str(spec.gpus)
        resources = {
            **{key: value for key, value in resources.items() if key != part},
            **({part: kept} if kept else {}),
        }
    return resources


def _master(job: Job, workload: str) -> str:
    return f"{workload}-0.{service_name(job)}.{job.namespace}.svc.cluster.local"


def _within(name: str, limit: int) -> str:
    if len(name) <= limit:
        return name
    return f"{name[: limit - 11].rstrip('-.')}-{hashlib.sha256(name.encode()).hexdigest()[:10]}"
