"""Fields of a manifest that its kind does not have: an API server drops them without a word unless it is asked to be strict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gryvia_common.kinds.crd import crd
from gryvia_common.kinds.kind import Kind
from gryvia_common.kube.objects import Json


def unknown_fields(kind: Kind[Any, Any], manifest: Json) -> list[str]:
    """Paths such as `spec.comand`, of the spec only: status is not the user's to write."""
    version = crd(kind)["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    top = sorted(set(manifest) - {"apiVersion", "kind", "metadata", "spec", "status", "data"})
    return [*top, *_walk(manifest.get("spec"), schema, "spec")]


def _walk(value: Any, schema: Json, path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _walk(item, schema.get("items") or {}, f"{path}[{number}]")
    elif isinstance(value, dict):
        known = schema.get("properties")
        others = schema.get("additionalProperties")
        for name, item in value.items():
            if known is not None and name in known:
                yield from _walk(item, known[name], f"{path}.{name}")
            elif isinstance(others, dict):
                yield from _walk(item, others, f"{path}.{name}")
            elif known is not None and not others:
                yield f"{path}.{name}"
