"""The environment of a job's container: the user's own variables first, then what a distributed run needs.

Invariant: no name twice. An earlier one gives way, and `overridden` names those of the user that give way to ours.
"""

from __future__ import annotations

from gryvia_common.kinds.aijob import Distributed, GryviaAIJobSpec
from gryvia_common.kinds.core import wire_list
from gryvia_common.kube.objects import Json
from gryvia_common.kube.templates import without_repeats

MASTER_PORT = 29500


def distribution(spec: GryviaAIJobSpec) -> Distributed | None:
    """The block `distributed` where it is in force."""
    return spec.distributed if spec.distributed and spec.distributed.enabled else None


def nodes(spec: GryviaAIJobSpec) -> int:
    """Pods of the job."""
    distributed = distribution(spec)
    return (distributed.nodes or 1) if distributed else 1


def environment(spec: GryviaAIJobSpec, master: str, index_path: str) -> list[Json]:
    """`master`: DNS name of the first pod. `index_path`: the pod field that holds its index."""
    return without_repeats(wire_list(spec.env) + _distributed(spec, master, index_path))


def overridden(spec: GryviaAIJobSpec) -> list[str]:
    """Variables of spec.env that the platform sets to something else."""
    ours = {variable["name"] for variable in _distributed(spec, "", "")}
    return [variable.name for variable in spec.env or () if variable.name in ours]


def _distributed(spec: GryviaAIJobSpec, master: str, index_path: str) -> list[Json]:
    """MASTER_ADDR and the rest of the contract."""
    distributed = distribution(spec)
    if distributed is None:
        return []
    count, elastic = nodes(spec), distributed.elastic
    processes = (distributed.gpus_per_node or spec.gpus) if spec.gpus > 0 else 1
    index: Json = {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": index_path}}}
    values = {
        "MASTER_ADDR": master,
        "MASTER_PORT": str(MASTER_PORT),
        "WORLD_SIZE": str(count * processes),
        "NNODES": f"{elastic.min_nodes}:{count}" if elastic else str(count),
        "NPROC_PER_NODE": str(processes),
        "GRYVIA_DIST_FRAMEWORK": distributed.framework or "",
        "GRYVIA_DIST_BACKEND": distributed.backend or "",
    }
    if distributed.backend != "gloo":
        values["NCCL_DEBUG"] = "INFO"
        if spec.network == "rdma":
            values.update({"NCCL_IB_DISABLE": "0", "NCCL_NET_GDR_LEVEL": "5"})
    ranks = [{"name": name, **index} for name in ("RANK", "NODE_RANK")]
    return [*({"name": name, "value": value} for name, value in values.items()), *ranks]
