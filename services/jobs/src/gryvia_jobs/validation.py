"""What is wrong with a job's spec, and what of it has no effect: pure, and the same for the service and a webhook.

Problems make the job Failed, so each names the field, the value and the fix. Fields without effect are only named in a
condition: a manifest that carries them is right elsewhere (a template that is used with and without GPUs, say).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from gryvia_common.durations import parse_duration
from gryvia_common.kinds.aijob import GryviaAIJobSpec
from gryvia_common.kinds.wire import QUANTITY_PATTERN
from gryvia_common.kube.names import is_dns_label, is_label_value, is_subdomain
from gryvia_common.kube.resources import STATEFUL_SETS
from gryvia_common.kube.templates import GPU
from gryvia_common.kube.workloads import QUEUE_LABEL
from gryvia_common.progress.patterns import compile_pattern
from gryvia_jobs.environment import distribution, nodes, overridden
from gryvia_jobs.workload import DATA_PATH, Job, has_service, workload_resource

_QUANTITY = re.compile(QUANTITY_PATTERN)


def problems(job: Job) -> list[str]:
    """One sentence a problem: field, value, what to change."""
    return [*_name(job), *_fields(job.spec), *_distributed(job.spec), *_patterns(job.spec)]


def without_effect(job: Job, *, kueue: bool) -> list[str]:
    """One sentence a field that is set and changes nothing in this combination."""
    return [*_unused_workload(job, kueue), *_unused_pod(job.spec)]


def _name(job: Job) -> Iterator[str]:
    if not is_dns_label(job.name, any_length=True):
        yield f"metadata.name: {_shown(job.name)} cannot name a pod's host; use lower-case letters, digits and '-' only"
    elif not has_service(job) and (distribution(job.spec) or workload_resource(job.spec) == STATEFUL_SETS):
        yield f"metadata.name: {_shown(job.name)} cannot name a Service; start it with a letter"


def _fields(spec: GryviaAIJobSpec) -> Iterator[str]:
    if not spec.image or re.search(r"\s", spec.image):
        yield f"spec.image: {_shown(spec.image)} is not an image; set it to one, for example python:3.11-slim"
    if spec.gpus < 0:
        yield f"spec.gpus: {spec.gpus} is negative; set it to 0 (CPU only) or more"
    if spec.gpu_type and not is_label_value(spec.gpu_type):
        yield f"spec.gpuType: {_shown(spec.gpu_type)} cannot be the value of a node label; use letters, digits, '-', '_', '.'"
    request = str(spec.storage_request)
    if _QUANTITY.fullmatch(request) is None or not re.search(r"[1-9]", request) or request.startswith("-"):
        yield f"spec.storageRequest: {_shown(request)} is not a size; set it to a positive quantity like 100Gi"
    if spec.storage and any(mount.mount_path.rstrip("/") == DATA_PATH for mount in spec.volume_mounts or ()):
        yield f"spec.volumeMounts: {DATA_PATH} is where spec.storage is mounted; mount yours elsewhere or unset spec.storage"
    if spec.retry_limit < 0:
        yield f"spec.retryLimit: {spec.retry_limit} is negative; set it to 0 or more"
    if spec.priority is not None and not 0 <= spec.priority <= 100:
        yield f"spec.priority: {spec.priority} is out of range; set it to a number from 0 to 100"
    if spec.queue_name and not is_subdomain(spec.queue_name, longest=63):
        yield f"spec.queueName: {_shown(spec.queue_name)} cannot name a LocalQueue; use lower-case letters, digits, '-' and '.'"
    if spec.timeout is not None and parse_duration(spec.timeout) is None:
        yield f"spec.timeout: {_shown(spec.timeout)} is not a duration; write it like 90m, 24h, 7d or 1d12h"


def _distributed(spec: GryviaAIJobSpec) -> Iterator[str]:
    distributed = distribution(spec)
    if distributed is None:
        return
    if distributed.nodes is not None and distributed.nodes < 1:
        yield f"spec.distributed.nodes: {distributed.nodes} is too few; set it to 1 or more"
    if distributed.gpus_per_node is not None and distributed.gpus_per_node < (1 if spec.gpus > 0 else 0):
        yield f"spec.distributed.gpusPerNode: {distributed.gpus_per_node} is too few; set it to 1 or more, or leave it out"
    fewest, count = distributed.elastic.min_nodes if distributed.elastic else 1, max(nodes(spec), 1)
    if not 1 <= fewest <= count:
        yield f"spec.distributed.elastic.minNodes: {fewest} is not from 1 to spec.distributed.nodes ({count}); change one of them"


def _patterns(spec: GryviaAIJobSpec) -> Iterator[str]:
    for name, pattern in (spec.metric_patterns or {}).items():
        try:
            compile_pattern(pattern)
        except ValueError as error:
            yield f"spec.metricPatterns[{name}]: {_shown(pattern)} {error}"


def _unused_workload(job: Job, kueue: bool) -> Iterator[str]:
    spec = job.spec
    if workload_resource(spec) == STATEFUL_SETS:
        fields = {
            "retryLimit": spec.retry_limit,
            "timeout": spec.timeout,
            "suspend": spec.suspend,
            "queueName": spec.queue_name,
        }
        unused = [field for field, value in fields.items() if value not in (None, 0)]
        yield from (f"spec.{field}: a StatefulSet runs for ever and has no such thing" for field in unused)
    elif spec.queue_name is not None and not kueue:
        yield "spec.queueName: the Kueue integration is off (setting GRYVIA_KUEUE_INTEGRATION)"
    elif spec.suspend and (spec.queue_name is not None or QUEUE_LABEL in job.labels):
        yield "spec.suspend: Kueue decides when a queued job runs"
    if spec.storage is None and str(spec.storage_request) != "100Gi":
        yield "spec.storageRequest: needs spec.storage"


def _unused_pod(spec: GryviaAIJobSpec) -> Iterator[str]:
    distributed = distribution(spec)
    if spec.gpus == 0 and spec.gpu_type not in (None, "", "any"):
        yield "spec.gpuType: spec.gpus is 0"
    for part in ("limits", "requests"):
        said = getattr(spec.resources, part, None) or {}
        if GPU in said and str(said[GPU]) != str(spec.gpus):
            yield f"spec.resources.{part}[{GPU}]: spec.gpus ({spec.gpus}) counts"
    if distributed is None and spec.distributed and spec.distributed.model_fields_set - {"enabled"}:
        yield "spec.distributed: distributed.enabled is false"
    if distributed and spec.gpus == 0 and (distributed.gpus_per_node or 0) > 1:
        yield "spec.distributed.gpusPerNode: spec.gpus is 0, so there is one process a pod"
    if spec.network == "rdma" and not (distributed and distributed.backend != "gloo"):
        yield "spec.network: rdma sets up NCCL, which needs spec.distributed with another backend than gloo"
    if spec.network == "sriov":
        yield "spec.network: sriov changes nothing in the pods; the network plugin of the cluster decides"
    yield from (f"spec.env[{name}]: the platform sets it" for name in overridden(spec))


def _shown(value: str) -> str:
    return json.dumps(value if len(value) <= 80 else value[:80] + "…", ensure_ascii=False)
