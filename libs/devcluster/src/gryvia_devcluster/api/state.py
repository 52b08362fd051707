"""What the parts of the registry share: the store, the served types, the hooks and the clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from gryvia_devcluster.api import refusals
from gryvia_devcluster.api.admission import Admission
from gryvia_devcluster.api.builtins import CRDS
from gryvia_devcluster.api.catalog import Catalog
from gryvia_devcluster.api.crds import served_versions
from gryvia_devcluster.clock import Clock, stamp
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store import Entry, Key, Store
from gryvia_devcluster.types import Json, ResourceType


def copy(obj: Json) -> Json:
    """A private deep copy, its keys in order: Go writes maps so, and who reads one may rely on it. Raises ApiError BadRequest for
    what is not JSON or is nested too deep."""
    try:
        fresh: Json = orjson.loads(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS))
    except TypeError as error:
        raise ApiError("BadRequest", f"the object cannot be stored as JSON: {error}") from error
    return fresh


@dataclass(frozen=True, slots=True)
class State:
    store: Store
    clock: Clock
    catalog: Catalog = field(default_factory=Catalog)
    admission: Admission = field(default_factory=Admission)

    def now(self) -> str:
        return stamp(self.clock.now())

    def entry(self, rt: ResourceType, namespace: str | None, name: str) -> Entry:
        """Raises ApiError NotFound."""
        entry = self.store.get(rt.group_resource, Key(namespace or "", name))
        if entry is None:
            raise refusals.not_found(rt, name)
        return entry

    def put(self, rt: ResourceType, obj: Json) -> None:
        """Stores; a stored CRD's types are served from here on."""
        meta = obj["metadata"]
        storage = self.catalog.stored(rt.group, rt.plural)
        if obj["apiVersion"] != storage.api_version:
            obj = {**obj, "apiVersion": storage.api_version}
        self.store.put(rt.group_resource, Key(meta.get("namespace") or "", meta["name"]), obj)
        if rt.group_resource == CRDS:
            self.serve(obj)

    def serve(self, crd: Json) -> None:
        self.catalog.replace_custom(crd["spec"]["group"], crd["spec"]["names"]["plural"], served_versions(crd))
