"""The Node object of this machine: what it has, what it is, that it is ready."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from datetime import datetime
from pathlib import Path

from gryvia_devcluster.clock import stamp
from gryvia_devcluster.node.context import Settings
from gryvia_devcluster.types import Json

GPU = "nvidia.com/gpu"


def capacity(data_dir: Path, gpus: int | None) -> dict[str, str]:
    """`gpus` None: the devices /dev shows."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    disk = shutil.disk_usage(data_dir).total
    found = len(list(Path("/dev").glob("nvidia[0-9]*"))) if gpus is None else gpus
    amounts = {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{disk // 1024}Ki",
        "pods": "250",
    }
    return amounts | ({GPU: str(found)} if found else {})


def node_labels(settings: Settings) -> dict[str, str]:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "kubernetes.io/hostname": settings.name,
        "kubernetes.io/os": sys.platform,
        "kubernetes.io/arch": machine,
        "node-role.kubernetes.io/control-plane": "",
        **settings.labels,
    }


def node_object(settings: Settings, amounts: dict[str, str], host_ip: str, now: datetime) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": settings.name, "labels": node_labels(settings)},
        "spec": {"podCIDR": "127.0.0.0/8"},
        "status": node_status(settings, amounts, host_ip, now),
    }


def node_status(settings: Settings, amounts: dict[str, str], host_ip: str, now: datetime) -> Json:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": stamp(now),
        "lastTransitionTime": stamp(now),
    }
    labels = node_labels(settings)
    return {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": [condition],
        "addresses": [{"type": "InternalIP", "address": host_ip}, {"type": "Hostname", "address": settings.name}],
        "nodeInfo": {
            "architecture": labels["kubernetes.io/arch"],
            "operatingSystem": labels["kubernetes.io/os"],
            "osImage": platform.platform(),
            "kernelVersion": platform.release(),
            "kubeletVersion": "v1.32.0-devcluster",
            "containerRuntimeVersion": "devcluster://processes",
        },
    }
