"""What the pod templates of all services have in common: GPUs, variables without doubled names, a hash of the spec.

A GPU pod has exactly the limit its spec says, the node selector of its type (none for `any`), and shared memory of the node's
size, because data loaders and NCCL outgrow the 64 MiB that a container gets by default.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import orjson

from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import GROUP

GPU = "nvidia.com/gpu"
GPU_NODE = f"{GROUP}/gpu"
SPEC_HASH = f"{GROUP}/spec-hash"
SHM, SHM_PATH = "gryvia-shm", "/dev/shm"


def gpu_resources(resources: Json, gpus: int) -> Json:
    """The user's resources with exactly `gpus` GPUs, whatever they say about GPUs themselves."""
    parts = {}
    for part in ("limits", "requests"):
        parts[part] = {name: value for name, value in (resources.get(part) or {}).items() if name != GPU}
    if gpus > 0:
        parts["limits"][GPU] = str(gpus)
    return given({**resources, **parts})


def gpu_node(gpus: int, gpu_type: str | None) -> dict[str, str]:
    """The node selector of a GPU type."""
    return {GPU_NODE: gpu_type} if gpus > 0 and gpu_type and gpu_type != "any" else {}


def shared_memory(gpus: int, mounts: Iterable[Json]) -> tuple[list[Json], list[Json]]:
    """Volume and mount for /dev/shm of a GPU pod, unless the user's `mounts` have one there."""
    if gpus <= 0 or any(mount["mountPath"].rstrip("/") == SHM_PATH for mount in mounts):
        return [], []
    return [{"name": SHM, "emptyDir": {"medium": "Memory"}}], [{"name": SHM, "mountPath": SHM_PATH}]


def without_repeats(variables: Sequence[Json]) -> list[Json]:
    """Environment variables with the last of each name only: Kubernetes lets it win, but server-side apply refuses the list."""
    last = {variable["name"]: position for position, variable in enumerate(variables)}
    return [variable for position, variable in enumerate(variables) if last[variable["name"]] == position]


def given(fields: Json) -> Json:
    """The fields that say something: an empty list, map or text in a manifest only invites differences."""
    return {key: value for key, value in fields.items() if value}


def spec_hash(said: Json) -> str:
    """For the annotation SPEC_HASH: which spec a frozen template was made from. `said`: what the user wrote, without
    defaults, which an upgrade may add."""
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
