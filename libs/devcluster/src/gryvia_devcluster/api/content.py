"""Everything below metadata: decoding, defaults and validation, the same two steps for built-in and custom types.

Custom objects go through their structural schema (schema/), built-ins through the field table and the hand-written rules.
"""

from __future__ import annotations

from gryvia_devcluster.api import defaults, fields, metadata, refusals, validation
from gryvia_devcluster.api.catalog import Served
from gryvia_devcluster.api.options import WriteOptions
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Json


def decode(served: Served, obj: Json, options: WriteOptions) -> None:
    """Drops what the type does not know, in place. Raises ApiError BadRequest under strict field validation."""
    rt = served.rt
    if served.structural is None:
        unknown = fields.decode(rt, obj)
    else:
        unknown = fields.decode_metadata(rt, obj)
        unknown += served.structural.prune(obj)
    if not unknown or options.field_validation == "Ignore":
        return
    if options.field_validation == "Warn":
        options.warnings += [f'unknown field "{path}"' for path in unknown]
        return
    listed = ", ".join(f'unknown field "{path}"' for path in sorted(unknown))
    raise ApiError(
        "BadRequest",
        f'{rt.kind} in version "{rt.version}" cannot be handled as a {rt.kind}: strict decoding error: {listed}',
    )


def default(served: Served, obj: Json) -> None:
    if served.structural is None:
        defaults.default(served.rt, obj)
    else:
        served.structural.default(obj)


def validate(served: Served, obj: Json, live: Json | None) -> None:
    """Raises ApiError Invalid with every cause."""
    rt, name = served.rt, obj["metadata"]["name"]
    causes = metadata.validate(rt, obj["metadata"], live)
    if served.structural is None:
        if live is None or live.get("spec") != obj.get("spec") or "spec" not in obj:
            causes += validation.validate(rt, obj, live)
    else:
        causes += served.structural.validate(obj, live, name=name)
    if causes:
        raise refusals.invalid(rt, name, causes)
