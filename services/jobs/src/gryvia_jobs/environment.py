"""The environment of a job's container: the user's own variables first, then what a distributed run needs.

Invariant: no name twice. Kubernetes lets the last one win, but server-side apply refuses such a list; so an earlier one is
left out here, and `overridden` names those of the user that give way to ours.
"""

from __future__ import annotations

from gryvia_common.kinds.aijob import Distributed, GryviaAIJobSpec
from gryvia_common.kinds.core import wire_list
from gryvia_common.kube.objects import Json

MASTER_PORT = 29500
JOB_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
SET_INDEX = "metadata.labels['apps.kubernetes.io/pod-index']"


def environment(spec: GryviaAIJobSpec, master: str, index_path: str) -> list[Json]:
    """`master`: DNS name of the first pod. `index_path`: the pod field that holds its index."""
    variables = wire_list(spec.env) + distributed_environment(spec, master, index_path)
    last = {variable["name"]: position for position, variable in enumerate(variables)}
    return [variable for position, variable in enumerate(variables) if last[variable["name"]] == position]


def overridden(spec: GryviaAIJobSpec) -> list[str]:
    """Variables of spec.env that the platform sets to something else."""
    ours = {variable["name"] for variable in distributed_environment(spec, "", "")}
    return [variable.name for variable in spec.env or () if variable.name in ours]


def nodes(spec: GryviaAIJobSpec) -> int:
    """Pods of the job."""
    return (spec.distributed.nodes or 1) if spec.distributed and spec.distributed.enabled else 1


def distributed_environment(spec: GryviaAIJobSpec, master: str, index_path: str) -> list[Json]:
    """MASTER_ADDR and the rest of the contract; nothing unless distributed.enabled."""
    distributed = spec.distributed
    if distributed is None or not distributed.enabled:
        return []
    count = nodes(spec)
    processes = _processes(spec, distributed)
    index: Json = {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": index_path}}}
    elastic = distributed.elastic
    values = {
        "NNODES": f"{elastic.min_nodes}:{count}" if elastic else str(count),
        "NPROC_PER_NODE": str(processes),
        "GRYVIA_DIST_FRAMEWORK": distributed.framework or "",
        "GRYVIA_DIST_BACKEND": distributed.backend or "",
    }
    if distributed.backend != "gloo":
        values["NCCL_DEBUG"] = "INFO"
        if spec.network == "rdma":
            values.update({"NCCL_IB_DISABLE": "0", "NCCL_NET_GDR_LEVEL": "5"})
    return [
        {"name": "MASTER_ADDR", "value": master},
        {"name": "MASTER_PORT", "value": str(MASTER_PORT)},
        {"name": "WORLD_SIZE", "value": str(count * processes)},
        {"name": "RANK", **index},
        {"name": "NODE_RANK", **index},
        *({"name": name, "value": value} for name, value in values.items()),
    ]


def _processes(spec: GryviaAIJobSpec, distributed: Distributed) -> int:
    return (distributed.gpus_per_node or spec.gpus) if spec.gpus > 0 else 1
