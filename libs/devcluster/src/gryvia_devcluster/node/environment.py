"""A container's environment and command line, as the kubelet would make them.

Pure but for reading ConfigMaps and Secrets through the given function. The host's own environment is no part of it:
what a pod sees is the image's, the container's and a few names of ours, so nothing of the user's shell leaks into a pod.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping

from gryvia_devcluster.node.fields import field_value, resource_value
from gryvia_devcluster.types import Json

_REFERENCE = re.compile(r"\$(\$|\([^()]*\))")
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")

ReadConfig = Callable[[str, str], Json | None]
"""`read("configmaps" | "secrets", name)` in the pod's namespace; None where there is none."""


class ConfigError(Exception):
    """The environment cannot be made; the container waits with CreateContainerConfigError and this message."""


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace `$(NAME)`; `$$` is a dollar sign, an unknown name stays as written."""

    def replace(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return values.get(match[1][1:-1], match[0])

    return _REFERENCE.sub(replace, text)


def container_env(
    pod: Json, container: Json, read: ReadConfig, allocatable: dict[str, str], extra: Mapping[str, str]
) -> dict[str, str]:
    """`envFrom`, then `env` in order, each value seeing the ones before it. `extra` may be referred to, as service
    variables may, and is overridden by both. Raises ConfigError."""
    values = dict(extra)
    for source in container.get("envFrom") or ():
        values.update(_from_source(source, read))
    for entry in container.get("env") or ():
        value = _value_of(entry, pod, container, read, allocatable, values)
        if value is not None:
            values[entry["name"]] = value
    return values


def _from_source(source: Json, read: ReadConfig) -> dict[str, str]:
    resource = "configmaps" if source.get("configMapRef") else "secrets"
    reference: Json = source.get("configMapRef") or source.get("secretRef") or {}
    found = read(resource, reference["name"])
    if found is None:
        if reference.get("optional"):
            return {}
        raise ConfigError(f'{_singular(resource)} "{reference["name"]}" not found')
    prefix = source.get("prefix", "")
    return {prefix + key: value for key, value in texts_of(found).items() if _NAME.fullmatch(prefix + key)}


def _value_of(
    entry: Json, pod: Json, container: Json, read: ReadConfig, allocatable: dict[str, str], values: Mapping[str, str]
) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expand(entry.get("value") or "", values)
    if reference := source.get("fieldRef"):
        try:
            return field_value(pod, reference["fieldPath"])
        except ValueError as error:
            raise ConfigError(str(error)) from error
    if reference := source.get("resourceFieldRef"):
        return resource_value(pod, container, reference, allocatable)
    if reference := source.get("configMapKeyRef"):
        return _key_value("configmaps", reference, pod, read)
    if reference := source.get("secretKeyRef"):
        return _key_value("secrets", reference, pod, read)
    raise ConfigError(f"env {entry['name']} has a valueFrom that is not supported")


def _key_value(resource: str, reference: Json, pod: Json, read: ReadConfig) -> str | None:
    found = read(resource, reference["name"])
    optional = reference.get("optional", False)
    if found is None:
        if optional:
            return None
        raise ConfigError(f'{_singular(resource)} "{reference["name"]}" not found')
    texts = texts_of(found)
    if reference["key"] not in texts and not optional:
        where = f"{pod['metadata']['namespace']}/{reference['name']}"
        kind = "ConfigMap" if resource == "configmaps" else "Secret"
        raise ConfigError(f"couldn't find key {reference['key']} in {kind} {where}")
    return texts.get(reference["key"])


def texts_of(obj: Json) -> dict[str, str]:
    """The entries of a ConfigMap or Secret as text."""
    return {key: raw.decode(errors="replace") for key, raw in bytes_of(obj).items()}


def bytes_of(obj: Json) -> dict[str, bytes]:
    """The entries of a ConfigMap or Secret as they would be in files."""
    data = obj.get("data") or {}
    if obj["kind"] == "Secret":
        return {key: base64.b64decode(value) for key, value in data.items()}
    binary = {key: base64.b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}
    return {**{key: value.encode() for key, value in data.items()}, **binary}


def _singular(resource: str) -> str:
    return resource.removesuffix("s")
