"""Changing an object that services change too: read, judge, patch on the version that was judged, again when somebody was first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gryvia_cli.names import word_of
from gryvia_common.errors import Conflict, Gone, Terminal
from gryvia_common.kinds.kind import Kind
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata

MANAGER = "gryvia-cli"


async def read(kube: Kube, kind: Kind[Any, Any], namespace: str, name: str) -> Json:
    """Terminal when there is none."""
    try:
        return await kube.get(kind.resource, namespace, name)
    except Gone as error:
        word = word_of(kind.name)
        raise Terminal(
            f"{word} {name} not found in namespace {namespace}; `gryvia list {word}s -A` shows those there are",
            reason="NotFound",
        ) from error


async def edit(
    kube: Kube, kind: Kind[Any, Any], namespace: str, name: str, change: Callable[[Json], Json | None]
) -> Json:
    """The object after the merge patch that `change` makes of it; as it is when that is None. `change` raises Terminal for what
    may not be done, and is asked again when the object has changed meanwhile."""
    while True:
        obj = await read(kube, kind, namespace, name)
        body = change(obj)
        if body is None:
            return obj
        body = {**body, "metadata": {**metadata(body), "resourceVersion": metadata(obj)["resourceVersion"]}}
        try:
            return await kube.patch(kind.resource, namespace, name, body, manager=MANAGER)
        except Conflict:
            continue
