"""Everything below metadata: decoding, defaults and validation, the same two steps for built-in and custom types.

Custom objects go through their structural schema (schema/), built-ins through the field table and the hand-written rules.
"""

from __future__ import annotations

import re

from gryvia_devcluster.api import defaults, fields, metadata, refusals, scaling, validation
from gryvia_devcluster.api.catalog import Served
from gryvia_devcluster.api.options import WriteOptions
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.schema.causes import BLOCKING
from gryvia_devcluster.types import Json

_STATUS_PATH = re.compile(r"\bstatus\.(\S+ in body )")


def decode(served: Served, obj: Json, options: WriteOptions) -> None:
    """Drops what the type does not know, in place. Raises ApiError BadRequest under strict field validation."""
    rt = served.rt
    mistakes = [f'duplicate field "{path}"' for path in options.duplicates]
    mistakes += [f'unknown field "{path}"' for path in drop_unknown(served, obj)]
    metadata.tidy(obj["metadata"])
    if not mistakes or options.field_validation == "Ignore":
        return
    if options.field_validation == "Warn":
        options.warnings += mistakes
        return
    listed = ", ".join(sorted(mistakes))
    raise ApiError(
        "BadRequest",
        f'{rt.kind} in version "{rt.version}" cannot be handled as a {rt.kind}: strict decoding error: {listed}',
    )


def _within_status(cause: Json) -> Json:
    """A write of the status is checked by the status's own schema, whose messages begin there."""
    message = _STATUS_PATH.sub(r"\1", cause["message"])
    if cause["field"] == "<nil>" and "Checked value" in message:
        return {**cause, "field": "status", "message": message.replace(" in status.", " in ")}
    return {**cause, "message": message}


def drop_unknown(served: Served, obj: Json) -> list[str]:
    """Drops what the type does not know, in place; the paths of it."""
    if served.structural is None:
        return fields.decode(served.rt, obj)
    return fields.decode_metadata(served.rt, obj) + served.structural.prune(obj)


def default(served: Served, obj: Json) -> None:
    if served.structural is None:
        defaults.default(served.rt, obj)
    else:
        served.structural.default(obj)


def validate(served: Served, obj: Json, live: Json | None, subresource: str = "") -> None:
    """Raises ApiError Invalid with every cause."""
    rt, name = served.rt, obj["metadata"]["name"]
    causes = metadata.validate(rt, obj["metadata"], live)
    if served.structural is None:
        if live is None or live.get("spec") != obj.get("spec") or "spec" not in obj:
            causes += validation.validate(rt, obj, live)
    else:
        blocked = any(cause["reason"] in BLOCKING for cause in causes)
        found = served.structural.validate(obj, live, blocked=blocked)
        causes += [_within_status(cause) for cause in found] if subresource == "status" else found
        causes += scaling.scale_causes(rt, obj)
    if causes:
        raise refusals.invalid(rt, name, causes)
