"""What cluster names resolve to inside pods: two files the node keeps current, and addresses in the environment.

`cluster.json` has every fully qualified name with its addresses, for the Python hook; `<namespace>.hosts` is an /etc/hosts
with the short names of one namespace as well, mounted over the real one where mounts are allowed. Computed from Services
and Endpoints alone, as a cluster's DNS does: a headless service is its endpoints, any other its cluster address.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from gryvia_devcluster.types import Json

DOMAIN = "cluster.local"
Names = dict[str, list[str]]


def resolve_names(services: Iterable[Json], endpoints: Mapping[tuple[str, str], Json]) -> Names:
    """Fully qualified name to addresses. `endpoints` by namespace and name."""
    names: Names = {}
    for service in services:
        meta, spec = service["metadata"], service["spec"]
        key = (meta["namespace"], meta["name"])
        base = f"{meta['name']}.{meta['namespace']}.svc.{DOMAIN}"
        addresses = _ready(endpoints.get(key))
        if spec.get("clusterIP") == "None":
            if addresses:
                names[base] = [address["ip"] for address in addresses]
        elif spec.get("clusterIP"):
            names[base] = [spec["clusterIP"]]
        for address in addresses:
            if address.get("hostname"):
                names[f"{address['hostname']}.{base}"] = [address["ip"]]
    return names


def _ready(endpoints: Json | None) -> list[Json]:
    subsets = (endpoints or {}).get("subsets") or ()
    return [address for subset in subsets for address in subset.get("addresses") or ()]


def hosts_text(names: Names, namespace: str, pods: Iterable[Json], head: str) -> str:
    """An /etc/hosts for pods of `namespace`: the machine's own lines, its pods' host names, then the cluster's names."""
    lines = [head.rstrip("\n")]
    for pod in pods:
        ip = pod.get("status", {}).get("podIP")
        if ip:
            lines.append(f"{ip}\t{pod['spec'].get('hostname') or pod['metadata']['name']}")
    lines += [f"{ip}\t{' '.join(_spellings(name, namespace))}" for name, ips in sorted(names.items()) for ip in ips]
    return "\n".join(lines) + "\n"


def _spellings(name: str, namespace: str) -> list[str]:
    """The names a pod of `namespace` may use, by the search list of cluster DNS."""
    service_domain = f".svc.{DOMAIN}"
    searched = [f".{namespace}{service_domain}", service_domain, f".{DOMAIN}"]
    return [name, *(name.removesuffix(suffix) for suffix in searched if name.endswith(suffix))]


def service_env(services: Iterable[Json], namespace: str) -> dict[str, str]:
    """`<SVC>_SERVICE_HOST` and `_PORT` for the services of a namespace that have an address."""
    env: dict[str, str] = {}
    for service in services:
        meta, spec = service["metadata"], service["spec"]
        if meta["namespace"] != namespace or spec.get("clusterIP") in (None, "", "None") or not spec.get("ports"):
            continue
        prefix = meta["name"].upper().replace("-", "_")
        env[f"{prefix}_SERVICE_HOST"] = spec["clusterIP"]
        env[f"{prefix}_SERVICE_PORT"] = str(spec["ports"][0]["port"])
        for port in spec["ports"]:
            if port.get("name"):
                env[f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = str(port["port"])
    return env


def write_names(path: Path, names: Names, redirects: Mapping[str, int]) -> None:
    """Replaced as a whole: a reader sees the old or the new file. `redirects` maps `ip:port` to the real port."""
    body = json.dumps({"names": names, "redirects": dict(redirects)}, sort_keys=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(body)
    fresh.replace(path)


def write_hosts(path: Path, text: str) -> None:
    """Written in place: the file is bind-mounted, and a mount would keep showing a replaced file's old self."""
    raw = text.encode()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(handle, raw, 0)
        os.ftruncate(handle, len(raw))
    finally:
        os.close(handle)
