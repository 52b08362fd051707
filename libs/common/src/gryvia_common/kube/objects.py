"""Kubernetes objects as JSON, and the few questions everybody asks of them.

Invariant: a JSON object taken from a cache is never changed; `Any` stays at this border.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]


class Key(NamedTuple):
    """Which object of a known type. `namespace` is empty for cluster-scoped ones."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def metadata(obj: Json) -> Json:
    meta: Json = obj.get("metadata") or {}
    return meta


def key_of(obj: Json) -> Key:
    meta = metadata(obj)
    return Key(meta.get("namespace") or "", meta["name"])


def uid_of(obj: Json) -> str:
    return str(metadata(obj).get("uid") or "")


def version_of(obj: Json) -> int:
    """The resourceVersion as a number: versions of one resource type compare as integers (KEP-5504)."""
    return int(metadata(obj).get("resourceVersion") or 0)


def labels_of(obj: Json) -> dict[str, str]:
    return metadata(obj).get("labels") or {}


def annotations_of(obj: Json) -> dict[str, str]:
    return metadata(obj).get("annotations") or {}


def is_deleting(obj: Json) -> bool:
    return bool(metadata(obj).get("deletionTimestamp"))


def controller_of(obj: Json) -> Json | None:
    """The owner reference marked `controller: true`, if there is one."""
    for ref in metadata(obj).get("ownerReferences") or []:
        if ref.get("controller"):
            owner: Json = ref
            return owner
    return None
