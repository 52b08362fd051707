"""Which types are served now: the built-ins, and what CustomResourceDefinitions have added.

A custom type keeps its compiled schema beside it (compiled on first use). Lookups are dictionaries because every request
makes one. `generation` of the catalog grows with each change, so that discovery and OpenAPI documents can be cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from gryvia_devcluster.api import refusals
from gryvia_devcluster.api.builtins import BUILTINS, SELECTABLE
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.schema import Structural
from gryvia_devcluster.types import Json, ResourceType


class Served:
    """A type as it is served: built-in (`schema` None) or custom, with its storage version and selectable fields."""

    def __init__(self, rt: ResourceType, *, storage: bool, selectable: frozenset[str], warning: str = "") -> None:
        self.rt = rt
        self.storage = storage
        self.selectable = selectable
        self.warning = warning

    @cached_property
    def structural(self) -> Structural | None:
        return Structural(self.rt.schema) if self.rt.schema is not None else None

    @property
    def custom(self) -> bool:
        return self.rt.schema is not None

    def refuses_field(self, path: str) -> str:
        """Why one cannot select by this field, in the real server's words; "" where one can."""
        if path == "metadata.name" or (self.rt.namespaced and path == "metadata.namespace") or path in self.selectable:
            return ""
        if self.custom or self.selectable:
            return f"field label not supported: {path}"
        return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


class Catalog:
    def __init__(self) -> None:
        self._several: set[tuple[str, str]] = set()
        self._served: dict[tuple[str, str, str], Served] = {}
        self._stored: dict[tuple[str, str], Served] = {}
        self.generation = 0
        for rt in BUILTINS:
            selectable = SELECTABLE.get(rt.group_resource, frozenset())
            self._add(Served(rt, storage=True, selectable=selectable))

    def _add(self, served: Served) -> None:
        rt = served.rt
        self._served[rt.group, rt.version, rt.plural] = served
        if served.storage:
            self._stored[rt.group, rt.plural] = served

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._served.get((group, version, plural))

    def served(self, rt: ResourceType) -> Served:
        """Raises ApiError NotFound when the type is no longer there."""
        served = self._served.get((rt.group, rt.version, rt.plural))
        if served is None:
            raise ApiError("NotFound", "the server could not find the requested resource")
        return served

    def stored(self, group: str, plural: str) -> ResourceType:
        """The type in its storage version. Raises ApiError NotFound."""
        served = self._stored.get((group, plural))
        if served is None:
            name = f"{plural}.{group}" if group else plural
            raise ApiError("NotFound", f"the server could not find the requested resource ({name})")
        return served.rt

    def has_several(self, rt: ResourceType) -> bool:
        """True when the type is served in more than one version."""
        return (rt.group, rt.plural) in self._several

    def all(self) -> Iterator[Served]:
        return iter(list(self._served.values()))

    def storage_types(self) -> Iterator[ResourceType]:
        return (served.rt for served in list(self._stored.values()))

    def replace_custom(self, group: str, plural: str, versions: Iterable[Served]) -> None:
        """Serves `versions` of a custom type from now on, and only these."""
        for key in [key for key in self._served if (key[0], key[2]) == (group, plural)]:
            del self._served[key]
        self._stored.pop((group, plural), None)
        listed = list(versions)
        for served in listed:
            self._add(served)
        self._several.discard((group, plural))
        if len(listed) > 1:
            self._several.add((group, plural))
        self.generation += 1

    def name_clash(self, crd: Json) -> list[refusals.Cause]:
        """A CRD that would take a built-in's place."""
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        served = self._stored.get((group, plural))
        if served is None or served.custom:
            return []
        return [refusals.invalid_value("spec.names.plural", plural, "the type is built in and cannot be redefined")]
