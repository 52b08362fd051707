"""In which form an answer goes out: the object, a Table for people, or metadata only.

One Render per request turns entries into bytes, lists and watch lines; the plain form is the entry's own cached bytes, so a
GET, a LIST and every watcher of an object share one encoding. `convert` says that the type has several versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import orjson

from gryvia_devcluster.api.registry import under_version
from gryvia_devcluster.api.tables import definitions, row
from gryvia_devcluster.store import Change, Entry
from gryvia_devcluster.types import Json, ResourceType

Form = Literal["plain", "table", "partial"]
_PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


def form_of(accept: str) -> Form:
    """The first form in the Accept header that this server has."""
    for part in accept.split(","):
        if "as=Table" in part and "v=v1;" in part + ";":
            return "table"
        if "as=PartialObjectMetadata" in part:
            return "partial"
        if "json" in part and "as=" not in part:
            return "plain"
    return "plain"


@dataclass(frozen=True, slots=True)
class Render:
    rt: ResourceType
    form: Form
    now: datetime
    include: str = "Metadata"
    convert: bool = False

    def one(self, entry: Entry) -> bytes:
        if self.form == "plain" and not self.convert:
            return entry.raw
        return orjson.dumps(self._one(entry.obj))

    def _one(self, obj: Json, *, columns: bool = True) -> Json:
        if self.form == "partial":
            return {**_PARTIAL, "metadata": obj["metadata"]}
        if self.form == "plain":
            return under_version(self.rt, obj)
        version = obj["metadata"]["resourceVersion"]
        return self._table([obj], {"resourceVersion": version}, columns=columns)

    def _table(self, objects: Sequence[Json], metadata: Json, *, columns: bool = True) -> Json:
        rows = [self._row(obj) for obj in objects]
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": definitions(self.rt) if columns else None,
            "rows": rows,
        }

    def _row(self, obj: Json) -> Json:
        cells: Json = {"cells": row(self.rt, obj, self.now)}
        if self.include == "Object":
            cells["object"] = under_version(self.rt, obj)
        elif self.include != "None":
            cells["object"] = {**_PARTIAL, "metadata": obj["metadata"]}
        return cells

    def many(self, entries: Sequence[Entry], metadata: Json) -> bytes:
        """The list body; `metadata` is ListMeta."""
        if self.form == "table":
            return orjson.dumps(self._table([entry.obj for entry in entries], metadata))
        kind, version = f"{self.rt.kind}List", self.rt.api_version
        if self.form == "partial":
            kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        head = orjson.dumps({"kind": kind, "apiVersion": version, "metadata": metadata})
        return b'%s,"items":[%s]}' % (head[:-1], b",".join(self.one(entry) for entry in entries))

    def line(self, change: Change) -> bytes:
        """A watch event with its newline."""
        if self.form == "plain" and not self.convert:
            return change.line
        return self.event(change.type, change.entry)

    def event(self, kind: str, entry: Entry, *, columns: bool = False) -> bytes:
        body = self.one(entry) if self.form == "plain" else orjson.dumps(self._one(entry.obj, columns=columns))
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), body)

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        metadata: Json = {"resourceVersion": str(version), "creationTimestamp": None}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj: Json = {"kind": self.rt.kind, "apiVersion": self.rt.api_version, "metadata": metadata}
        if self.form == "table":
            table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            obj = {**table, "columnDefinitions": None, "rows": [{"cells": [], "object": obj}]}
        elif self.form == "partial":
            obj = {**_PARTIAL, "metadata": metadata}
        return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"
