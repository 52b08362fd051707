"""Tables: the columns and cells that `kubectl get` prints.

Built-in kinds have the columns of the real printers (columns.py); a custom type has its additionalPrinterColumns.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from gryvia_devcluster.api.columns import COLUMNS
from gryvia_devcluster.api.durations import age
from gryvia_devcluster.api.jsonpath import compile_path, evaluate
from gryvia_devcluster.types import Json, ResourceType

_NAME = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": "Name must be unique within a namespace. Is required when creating resources, although some resources may allow "
    "a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence "
    "and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
    "priority": 0,
}
_NAMELESS = frozenset({"events"})


def definitions(rt: ResourceType) -> list[Json]:
    """metav1.TableColumnDefinition, the name first."""
    builtin = COLUMNS.get(rt.group_resource)
    if rt.schema is None and builtin:
        others = [_definition(column.title, column.type, column.wide) for column in builtin]
    elif rt.schema is None:
        others = [_definition("Age", "string", False)]
    else:
        others = [
            {
                "name": column["name"],
                "type": column["type"],
                "format": column.get("format", ""),
                "description": column.get("description") or _path_of(column),
                "priority": column.get("priority", 0),
            }
            for column in rt.columns
        ]
    return others if rt.group_resource in _NAMELESS else [_NAME, *others]


def _path_of(column: Json) -> str:
    return f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"


def _definition(title: str, kind: str, wide: bool) -> Json:
    form = "name" if title == "Name" else ""
    return {"name": title, "type": kind, "format": form, "description": "", "priority": int(wide)}


def row(rt: ResourceType, obj: Json, now: datetime) -> list[Any]:
    """The cells of one object, in the order of `definitions`."""
    name = obj["metadata"]["name"]
    builtin = COLUMNS.get(rt.group_resource)
    if rt.schema is not None:
        return [name, *(_cell(column, obj, now) for column in rt.columns)]
    if builtin is None:
        return [name, age(obj["metadata"].get("creationTimestamp"), now)]
    cells = [column.cell(obj, now) for column in builtin]
    return cells if rt.group_resource in _NAMELESS else [name, *cells]


def _cell(column: Json, obj: Json, now: datetime) -> Any:
    found = evaluate(compile_path(column["jsonPath"]), obj)
    if not found:
        return None
    kind, value = column["type"], found[0]
    if kind == "date":
        return age(value, now) if isinstance(value, str) and len(value) >= 20 else "<invalid>"
    if kind in ("integer", "number", "boolean"):
        return value if isinstance(value, (int, float)) else None
    if len(found) > 1:
        return ",".join(str(item) for item in found)
    if isinstance(value, bool):
        return "true" if value else "false"
    return orjson.dumps(value).decode() if isinstance(value, (dict, list)) else str(value)
