"""Hooks by which another room fills in or refuses objects of one type.

`hook(operation, rt, new, old)` may change `new` in place (it is the server's own copy) or raise ApiError. The networking
room allocates cluster addresses this way. Hooks run after the defaults and before validation;
`created` hooks run right after the object was stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from gryvia_devcluster.types import Json, ResourceType

Operation = Literal["CREATE", "UPDATE", "DELETE"]
Created = Callable[[Json], None]
Hook = Callable[[Operation, ResourceType, Json, Json | None], None]


class Admission:
    def __init__(self) -> None:
        self._hooks: dict[str, list[Hook]] = {}
        self._created: dict[str, list[Created]] = {}

    def add(self, group_resource: str, hook: Hook) -> None:
        self._hooks.setdefault(group_resource, []).append(hook)

    def add_created(self, group_resource: str, hook: Created) -> None:
        self._created.setdefault(group_resource, []).append(hook)

    def created(self, rt: ResourceType, obj: Json) -> None:
        for hook in self._created.get(rt.group_resource, ()):
            hook(obj)

    def review(self, operation: Operation, rt: ResourceType, new: Json, old: Json | None) -> None:
        for hook in self._hooks.get(rt.group_resource, ()):
            hook(operation, rt, new, old)
