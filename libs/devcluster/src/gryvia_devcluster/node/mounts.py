"""Where a container sees its volumes: the list of mounts, and the rewriting of paths where mounts are not allowed.

With namespaces the process finds its mount paths as written. Without them (macOS, a hardened kernel) every mount path in
the command, the arguments and the environment is replaced by the real folder, and GRYVIA_MOUNTS holds the whole mapping
as JSON for programs that want to look themselves. A path inside a file or built in the program is not found then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from gryvia_devcluster.node.environment import expand
from gryvia_devcluster.node.process.sandbox import Mount
from gryvia_devcluster.types import Json

_READ_ONLY = frozenset({"configMap", "secret", "projected", "downwardAPI"})


class MountError(Exception):
    """A mount that cannot be made; the message is for the user."""


def container_mounts(pod: Json, container: Json, folders: Mapping[str, Path], env: Mapping[str, str]) -> list[Mount]:
    """Makes missing sub-paths in writable volumes. Raises MountError."""
    kinds = {v["name"]: next((k for k in v if k != "name"), "") for v in pod["spec"].get("volumes") or ()}
    claims = {v["name"]: v.get("persistentVolumeClaim") or {} for v in pod["spec"].get("volumes") or ()}
    mounts: list[Mount] = []
    for entry in container.get("volumeMounts") or ():
        name = entry["name"]
        if name not in folders:
            raise MountError(f'volumeMount "{name}" names no volume of the pod')
        sub = entry.get("subPath") or expand(entry.get("subPathExpr") or "", env)
        source = _sub_folder(folders[name], sub, kinds[name] in _READ_ONLY)
        read_only = entry.get("readOnly", False) or kinds[name] in _READ_ONLY or claims[name].get("readOnly", False)
        mounts.append({"source": str(source), "target": os.path.normpath(entry["mountPath"]), "read_only": read_only})
    return mounts


def _sub_folder(folder: Path, sub: str, fixed: bool) -> Path:
    if not sub:
        return folder
    if os.path.isabs(sub) or ".." in Path(sub).parts:
        raise MountError(f'subPath "{sub}" must be relative and must not contain ".."')
    path = folder / sub
    if not path.exists():
        if fixed:
            raise MountError(f'subPath "{sub}" does not exist in the volume')
        path.mkdir(parents=True)
    return path


def rewrite(text: str, mounts: list[Mount]) -> str:
    """Replace each mount path that stands in `text` as a whole path or as its beginning."""
    if not mounts:
        return text
    sources = {mount["target"]: mount["source"] for mount in mounts}
    longest_first = sorted(sources, key=len, reverse=True)
    pattern = "|".join(re.escape(target) for target in longest_first if target != "/")
    return re.sub(rf"(?<![\w./-])(?:{pattern})(?![\w.-])", lambda match: sources[match[0]], text)
