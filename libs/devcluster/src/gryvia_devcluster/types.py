"""The words the rooms of devcluster share: a resource type, a watch event, and the API every room calls.

Invariant: an object handed out is an immutable snapshot. Whoever wants to change one copies it first, so that the store
never has to copy on read (a LIST of ten thousand objects stays cheap).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

Json = dict[str, Any]
Subresource = Literal["", "status", "scale"]
PatchType = Literal[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
]


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One served type. `schema` is a structural OpenAPI v3 schema, None where nothing is validated."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    schema: Json | None = field(default=None, compare=False, hash=False)
    columns: tuple[Json, ...] = field(default=(), compare=False, hash=False)
    scale: Json | None = field(default=None, compare=False, hash=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED or BOOKMARK; for DELETED `object` is the last state with the deletion's resourceVersion."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: Json


class Api(Protocol):
    """The one way in, for HTTP handlers, controllers and the node alike. Validation, defaulting, pruning, generation,
    ownership, finalizers and preconditions happen here. Synchronous: everything is in memory. Raises ApiError."""

    def resource(self, group: str, plural: str) -> ResourceType: ...

    def get(self, rt: ResourceType, namespace: str | None, name: str) -> Json: ...

    def list(
        self, rt: ResourceType, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> tuple[list[Json], int]:
        """The matching objects, by namespace then name, and the resourceVersion of this view."""
        ...

    def create(self, rt: ResourceType, namespace: str | None, obj: Json, *, manager: str = "devcluster") -> Json: ...

    def update(
        self,
        rt: ResourceType,
        namespace: str | None,
        name: str,
        obj: Json,
        *,
        subresource: Subresource = "",
        manager: str = "devcluster",
    ) -> Json:
        """Replace. A resourceVersion in `obj` that is not the stored one is a Conflict. Nothing changed: no new version."""
        ...

    def patch(
        self,
        rt: ResourceType,
        namespace: str | None,
        name: str,
        body: Any,
        patch_type: PatchType,
        *,
        subresource: Subresource = "",
        manager: str = "devcluster",
        force: bool = False,
    ) -> Json: ...

    def delete(
        self,
        rt: ResourceType,
        namespace: str | None,
        name: str,
        *,
        propagation: Literal["Background", "Foreground", "Orphan"] | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
    ) -> Json:
        """Marks or removes. A bound, running Pod is only marked: the node removes it when its processes ended."""
        ...

    def watch(
        self, rt: ResourceType, since: int | None = None, *, namespace: str | None = None
    ) -> AsyncIterator[WatchEvent]:
        """Changes after `since` (None: the current objects as ADDED first). Raises ApiError Expired before the horizon."""
        ...

    def types(self) -> Iterable[ResourceType]: ...

    def record_event(self, obj: Json, *, type: str, reason: str, message: str, component: str) -> None:
        """A core/v1 Event about `obj`; equal ones within ten minutes only raise the count."""
        ...


class PodLogs(Protocol):
    """Where the node keeps what containers wrote. The API's log subresource reads these files (and follows them)."""

    def path(self, pod: Json, container: str, *, previous: bool = False) -> Path: ...

    def ended(self, pod: Json, container: str) -> bool: ...
