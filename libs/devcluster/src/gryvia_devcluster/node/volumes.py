"""Volumes as folders: filled from ConfigMaps, Secrets and the downward API, or taken from a claim's folder.

A folder is filled once, before the first container starts, and not kept up to date afterwards. What is missing raises
NotMounted, with the kubelet's words, and the pod waits until the thing appears.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from gryvia_devcluster.node.environment import ReadConfig, bytes_of
from gryvia_devcluster.node.fields import field_value, resource_value
from gryvia_devcluster.node.layout import Layout
from gryvia_devcluster.types import Json

ReadClaim = Callable[[str], Json | None]


class NotMounted(Exception):
    """A volume that cannot be made yet; the message is for the FailedMount event."""


def prepare_volumes(
    pod: Json, layout: Layout, read: ReadConfig, read_claim: ReadClaim, allocatable: dict[str, str]
) -> dict[str, Path]:
    """The folder (or for hostPath, the path) behind each volume of the pod. Raises NotMounted."""
    folders: dict[str, Path] = {}
    for volume in pod["spec"].get("volumes") or ():
        folder = layout.volume(pod["metadata"]["uid"], volume["name"])
        if claim := volume.get("persistentVolumeClaim"):
            folder = layout.persistent(_bound_volume(claim["claimName"], read_claim))
            folder.mkdir(parents=True, exist_ok=True)
        elif host := volume.get("hostPath"):
            folder = Path(host["path"])
            if host.get("type") == "DirectoryOrCreate":
                folder.mkdir(parents=True, exist_ok=True)
        elif "emptyDir" in volume:
            folder.mkdir(parents=True, exist_ok=True)
        else:
            _fill(folder, _contents(volume, pod, read, allocatable))
        folders[volume["name"]] = folder
    return folders


def _bound_volume(claim_name: str, read_claim: ReadClaim) -> str:
    claim = read_claim(claim_name)
    if claim is None:
        raise NotMounted(f'persistentvolumeclaim "{claim_name}" not found')
    if claim.get("status", {}).get("phase") != "Bound":
        raise NotMounted(f'persistentvolumeclaim "{claim_name}" is not bound')
    return str(claim["spec"]["volumeName"])


def _contents(volume: Json, pod: Json, read: ReadConfig, allocatable: dict[str, str]) -> dict[str, bytes]:
    if source := volume.get("configMap"):
        return _from_object("configmaps", source["name"], source, read)
    if source := volume.get("secret"):
        return _from_object("secrets", source["secretName"], source, read)
    if source := volume.get("downwardAPI"):
        return _from_pod(source, pod, allocatable)
    if (source := volume.get("projected")) is not None:
        files: dict[str, bytes] = {}
        for part in source.get("sources") or ():
            files.update(_projected(part, pod, read, allocatable))
        return files
    kind = next((key for key in volume if key != "name"), "nothing")
    raise NotMounted(f'volume "{volume["name"]}" is of kind {kind}, which this cluster does not have')


def _projected(part: Json, pod: Json, read: ReadConfig, allocatable: dict[str, str]) -> dict[str, bytes]:
    if source := part.get("configMap"):
        return _from_object("configmaps", source["name"], source, read)
    if source := part.get("secret"):
        return _from_object("secrets", source["name"], source, read)
    if source := part.get("downwardAPI"):
        return _from_pod(source, pod, allocatable)
    return {}


def _from_object(resource: str, name: str, source: Json, read: ReadConfig) -> dict[str, bytes]:
    found = read(resource, name)
    kind = resource.removesuffix("s")
    if found is None:
        if source.get("optional"):
            return {}
        raise NotMounted(f'{kind} "{name}" not found')
    data = bytes_of(found)
    items = source.get("items")
    if items is None:
        return data
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not source.get("optional"):
        raise NotMounted(f'{kind} "{name}" has no key "{missing[0]}"')
    return {item["path"]: data[item["key"]] for item in items if item["key"] in data}


def _from_pod(source: Json, pod: Json, allocatable: dict[str, str]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for item in source.get("items") or ():
        if reference := item.get("fieldRef"):
            text = field_value(pod, reference["fieldPath"])
        else:
            text = resource_value(pod, {}, item["resourceFieldRef"], allocatable)
        files[item["path"]] = text.encode()
    return files


def _fill(folder: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise NotMounted(f'path "{name}" leaves its volume')
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
