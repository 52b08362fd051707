"""From a container's spec to what the launcher starts: argument vector, environment, folder, mounts.

The process gets the image's variables, PATH, HOME, HOSTNAME, the addresses of services, the container's own variables,
and ours: POD_IP (bind here, not to 0.0.0.0, to keep ports apart), GRYVIA_TERMINATION_LOG, GRYVIA_NAMES and the Python
hook on PYTHONPATH. Nothing of the node's own environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gryvia_devcluster.node.context import Context
from gryvia_devcluster.node.environment import container_env, expand
from gryvia_devcluster.node.images import DEFAULT_PATH, Image
from gryvia_devcluster.node.mounts import container_mounts, rewrite
from gryvia_devcluster.node.process.sandbox import Mount
from gryvia_devcluster.node.process.spawner import Spawn
from gryvia_devcluster.node.quantity import divide_up, parse_quantity
from gryvia_devcluster.types import Json

HOOK = Path(__file__).with_name("hook")
_THREAD_CAPS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def hostname_of(pod: Json) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63]


def termination_file(context: Context, pod: Json, container: Json) -> Path:
    return context.layout.container(pod["metadata"]["uid"], container["name"]) / "termination-log"


def build_spawn(
    context: Context, pod: Json, container: Json, image: Image, folders: Mapping[str, Path], attempt: int
) -> Spawn:
    """Raises ConfigError and MountError."""
    meta = pod["metadata"]
    place = context.layout.container(meta["uid"], container["name"])
    work = place / "work"
    work.mkdir(parents=True, exist_ok=True)
    ours = _own_variables(context, pod, container, place)
    base = {"PATH": DEFAULT_PATH, "HOME": str(work), "HOSTNAME": hostname_of(pod), **image.env, **ours}
    env = container_env(pod, container, context.reader(meta["namespace"]), context.allocatable, base)
    argv = _arguments(container, image, env)
    mounts = container_mounts(pod, container, folders, env)
    cwd = container.get("workingDir") or image.workdir or str(work)
    if context.spawner.sandboxed:
        mounts = [*_own_mounts(context, pod, container), *mounts]
    else:
        mounted = [*mounts, _termination_mount(context, pod, container)]
        env = {key: value if key in ours else rewrite(value, mounted) for key, value in env.items()}
        env["GRYVIA_MOUNTS"] = json.dumps({mount["target"]: mount["source"] for mount in mounts})
        argv, cwd, mounts = [rewrite(word, mounted) for word in argv], rewrite(cwd, mounted), []
    env["PYTHONPATH"] = ":".join(filter(None, (str(HOOK), env.get("PYTHONPATH"))))
    return Spawn(
        argv=argv,
        env=env,
        cwd=cwd,
        output=str(context.layout.log(meta["uid"], container["name"], attempt)),
        hostname=hostname_of(pod),
        mounts=mounts,
        record=str(place / "process.json"),
    )


def _arguments(container: Json, image: Image, env: Mapping[str, str]) -> list[str]:
    """`command` replaces the image's entrypoint and its cmd, `args` only its cmd."""
    command = [expand(word, env) for word in container.get("command") or ()]
    args = [expand(word, env) for word in container.get("args") or ()]
    if command:
        return [*command, *args]
    return [*image.entrypoint, *(args or image.cmd)]


def _own_variables(context: Context, pod: Json, container: Json, place: Path) -> dict[str, str]:
    meta = pod["metadata"]
    values = {
        **context.service_env(pod),
        "POD_IP": pod.get("status", {}).get("podIP", ""),
        "GRYVIA_TERMINATION_LOG": str(place / "termination-log"),
        "GRYVIA_NAMES": context.names_file,
        "GRYVIA_POD_IP": pod.get("status", {}).get("podIP", ""),
        "GRYVIA_POD_NAMESPACE": meta["namespace"],
    }
    if context.settings.api_address:
        host, port = context.settings.api_address
        values |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)}
    cpus = ((container.get("resources") or {}).get("limits") or {}).get("cpu")
    if cpus is not None:
        threads = str(max(divide_up(parse_quantity(cpus), parse_quantity("1")), 1))
        values |= dict.fromkeys(_THREAD_CAPS, threads)
    return values


def _own_mounts(context: Context, pod: Json, container: Json) -> list[Mount]:
    mounts = [_termination_mount(context, pod, container)]
    hosts = context.hosts_file(pod["metadata"]["namespace"])
    if Path("/etc/hosts").is_file():
        mounts.append({"source": hosts, "target": "/etc/hosts", "read_only": True})
    return mounts


def _termination_mount(context: Context, pod: Json, container: Json) -> Mount:
    file = termination_file(context, pod, container)
    file.write_bytes(b"")
    path = container.get("terminationMessagePath") or "/dev/termination-log"
    return {"source": str(file), "target": path, "read_only": False}
