"""The children of a job: the batch Job or the StatefulSet, the headless Service, the claim; as they should be and as found.

They are made once, from the spec as it is at that moment; the annotation gryvia.io/spec-hash remembers which spec that was, so
that a later change can be named instead of being ignored without a word. Names end where Kubernetes' own names built from
them would no longer fit: `<job>-<index>` is a host name, and a StatefulSet's name becomes a label value with a hash.
"""

from __future__ import annotations

from gryvia_common.durations import parse_duration
from gryvia_common.kinds.aijob import AI_JOB, GryviaAIJobSpec, GryviaAIJobStatus
from gryvia_common.kinds.core import wire_list
from gryvia_common.kube.children import (
    NAME_LIMIT,
    child_name,
    is_controlled_by,
    owned_metadata,
    partial_manifest,
    template_metadata,
)
from gryvia_common.kube.names import is_service_name
from gryvia_common.kube.objects import Json, is_deleting
from gryvia_common.kube.pods import JOB_INDEX, SET_INDEX, pods_of
from gryvia_common.kube.resources import GROUP, JOBS, PODS, PVCS, SERVICES, STATEFUL_SETS, Resource
from gryvia_common.kube.templates import SPEC_HASH, given, gpu_node, gpu_resources, shared_memory, spec_hash
from gryvia_common.kube.workloads import QUEUE_LABEL, Workload
from gryvia_common.runtime.plan import Apply
from gryvia_common.runtime.world import Object, World
from gryvia_jobs.environment import MASTER_PORT, distribution, environment, nodes

Job = Object[GryviaAIJobSpec, GryviaAIJobStatus]

WORKLOADS: tuple[Resource, ...] = (JOBS, STATEFUL_SETS)
CONTAINER = "main"
DATA, DATA_PATH = "gryvia-data", "/data"
JOB_LABEL, TYPE_LABEL = f"{GROUP}/job", f"{GROUP}/type"
QUEUE_NAME = f"{GROUP}/queue-name"
STATEFUL_SET_NAME_LIMIT = 52
PORT = {"name": "master", "protocol": "TCP"}


def observe(job: Job, world: World) -> Workload:
    """The job's workload (there is at most one in use) with its pods."""
    for resource in WORKLOADS:
        for raw in world.children(resource):
            if is_controlled_by(raw, job.raw) and not is_deleting(raw):
                return Workload(resource, raw, pods_of(raw, world.children(PODS), CONTAINER))
    return Workload()


def children(job: Job, found: Workload, queue: str) -> tuple[Apply, ...]:
    """The workload last: its pods need the claim, and its name in the DNS. `queue`: Kueue's LocalQueue, empty without."""
    applies = []
    if job.spec.storage:
        applies.append(Apply(PVCS, _claim(job), create_only=True))
    if has_service(job):
        applies.append(Apply(SERVICES, _headless_service(job)))
    if not found.raw:
        resource = workload_resource(job.spec)
        manifest = _stateful_set(job) if resource == STATEFUL_SETS else _batch_job(job, queue)
        applies.append(Apply(resource, manifest, create_only=True))
    elif found.resource == JOBS and not found.queue and found.suspended != job.spec.suspend:
        # The one field that is synced, alone: the rest of the Job was created, not applied, and stays untouched.
        applies.append(Apply(JOBS, partial_manifest(found.raw, JOBS, {"suspend": job.spec.suspend})))
    return tuple(applies)


def workload_resource(spec: GryviaAIJobSpec) -> Resource:
    kind = spec.workload_kind or ("statefulset" if spec.type == "inference" else "job")
    return STATEFUL_SETS if kind == "statefulset" else JOBS


def local_queue(job: Job, *, kueue: bool) -> str:
    """The LocalQueue it asks for: by Kueue's own label always, by our field and annotation where the integration is on."""
    if workload_resource(job.spec) == STATEFUL_SETS:
        return ""
    ours = (job.spec.queue_name or job.annotations.get(QUEUE_NAME) or "") if kueue else ""
    return job.labels.get(QUEUE_LABEL) or ours


def has_service(job: Job) -> bool:
    """A Service's name must start with a letter; a job on one pod that is called 7b-eval does without."""
    return is_service_name(_service_name(job))


def frozen_hash(spec: GryviaAIJobSpec) -> str:
    """Of everything but what may change later: `suspend`."""
    return spec_hash(spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"suspend"}))


def _batch_job(job: Job, queue: str) -> Json:
    """batch/v1 Job, Indexed, one index a pod."""
    spec, count, distributed = job.spec, nodes(job.spec), distribution(job.spec)
    name = child_name(job.name, limit=NAME_LIMIT - len(f"-{count - 1}"))
    disruption = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    body: Json = {
        "completionMode": "Indexed",
        "parallelism": count,
        "completions": count,
        "backoffLimit": spec.retry_limit,
        "podFailurePolicy": {"rules": [disruption]},
        "suspend": spec.suspend or bool(queue),
        "template": _template(job, name, f"metadata.annotations['{JOB_INDEX}']", "Never"),
    }
    if spec.timeout:
        body["activeDeadlineSeconds"] = parse_duration(spec.timeout)
    if distributed and distributed.elastic:
        body["successPolicy"] = {"rules": [{"succeededCount": distributed.elastic.min_nodes}]}
    return _manifest(job, JOBS, name, body, {QUEUE_LABEL: queue} if queue else {})


def _stateful_set(job: Job) -> Json:
    """All pods start at once: the first of a distributed run waits for the others before it is of any use."""
    name = child_name(job.name, "training", limit=STATEFUL_SET_NAME_LIMIT)
    template = _template(job, name, f"metadata.labels['{SET_INDEX}']", "Always")
    template["metadata"]["annotations"][f"{GROUP}/env-version"] = "2"
    body = {
        "replicas": nodes(job.spec),
        "serviceName": _service_name(job),
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {JOB_LABEL: child_name(job.name)}},
        "template": template,
    }
    return _manifest(job, STATEFUL_SETS, name, body)


def _headless_service(job: Job) -> Json:
    body = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {JOB_LABEL: child_name(job.name)},
        "ports": [{**PORT, "port": MASTER_PORT, "targetPort": MASTER_PORT}],
    }
    return _manifest(job, SERVICES, _service_name(job), body)


def _claim(job: Job) -> Json:
    """Several pods may be on several nodes, so they need a volume that can be mounted on all of them."""
    body = {
        "accessModes": ["ReadWriteMany" if nodes(job.spec) > 1 else "ReadWriteOnce"],
        "storageClassName": job.spec.storage,
        "resources": {"requests": {"storage": str(job.spec.storage_request)}},
    }
    return _manifest(job, PVCS, _claim_name(job), body)


def _service_name(job: Job) -> str:
    return child_name(job.name, "headless")


def _claim_name(job: Job) -> str:
    return child_name(job.name, "data")


def _manifest(job: Job, resource: Resource, name: str, body: Json, labels: dict[str, str] | None = None) -> Json:
    meta = owned_metadata(job.raw, AI_JOB.resource, name, {**_labels(job), **(labels or {})})
    if resource in WORKLOADS:
        meta["annotations"][SPEC_HASH] = frozen_hash(job.spec)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": body}


def _labels(job: Job) -> dict[str, str]:
    """Ours, and those of the AIJob that say what it is part of (tuner, workflow, step, run, team, tenant, fork, …)."""
    inherited = {key: value for key, value in job.labels.items() if key.startswith(f"{GROUP}/")}
    return {**inherited, JOB_LABEL: child_name(job.name), TYPE_LABEL: job.spec.type}


def _template(job: Job, workload: str, index_path: str, restart: str) -> Json:
    spec = job.spec
    volumes, mounts = _volumes(job)
    master = f"{workload}-0.{_service_name(job)}.{job.namespace}.svc.cluster.local"
    optional = {
        "imagePullPolicy": spec.image_pull_policy,
        "command": spec.command,
        "args": spec.args,
        "workingDir": spec.working_dir,
        "resources": gpu_resources(spec.resources.wire() if spec.resources else {}, spec.gpus),
        "volumeMounts": mounts,
        "ports": [{**PORT, "containerPort": MASTER_PORT}] if nodes(spec) > 1 else [],
    }
    container = {
        "name": CONTAINER,
        "image": spec.image,
        "env": environment(spec, master, index_path),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **given(optional),
    }
    placement = {
        "subdomain": _service_name(job) if restart == "Never" and has_service(job) else "",
        "nodeSelector": {**(spec.node_selector or {}), **gpu_node(spec.gpus, spec.gpu_type)},
        "tolerations": wire_list(spec.tolerations),
        "affinity": spec.affinity,
        "volumes": volumes,
    }
    pod = {"restartPolicy": restart, "enableServiceLinks": False, "containers": [container], **given(placement)}
    return {"metadata": template_metadata(job.raw, AI_JOB.resource, _labels(job)), "spec": pod}


def _volumes(job: Job) -> tuple[list[Json], list[Json]]:
    volumes, mounts = wire_list(job.spec.volumes), wire_list(job.spec.volume_mounts)
    if job.spec.storage:
        volumes.append({"name": DATA, "persistentVolumeClaim": {"claimName": _claim_name(job)}})
        mounts.append({"name": DATA, "mountPath": DATA_PATH})
    memory, at = shared_memory(job.spec.gpus, mounts)
    return volumes + memory, mounts + at
