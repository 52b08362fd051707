"""JSON patch (RFC 6902) and merge patch (RFC 7386), by the libraries that know them, with the real server's refusals.

The real server answers a JSON patch that does not apply with 422 and a text that names no reason; the reason stays on
the raised error as its cause.
"""

from __future__ import annotations

from typing import Any

import jsonpatch
import jsonpointer
from json_merge_patch import merge  # type: ignore[import-untyped]  # it ships no types

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch.copying import deep_copy
from gryvia_devcluster.types import Json

MAX_OPERATIONS = 10_000
REJECTED = "the server rejected our request due to an error in our request"


def json_patch(obj: Json, ops: Any) -> Json:
    """A new object. Raises ApiError: BadRequest where `ops` is no JSON patch, Invalid where it does not apply to
    `obj`."""
    if not isinstance(ops, list):
        raise ApiError("BadRequest", "json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(ops) > MAX_OPERATIONS:
        raise ApiError(
            "BadRequest", f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(ops)}"
        )
    if any(not isinstance(op, dict) for op in ops):
        raise ApiError("BadRequest", "error decoding patch: an operation of a JSON patch is an object")
    out: Any = deep_copy(obj)
    try:
        for op in ops:
            out = _applied(out, op)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as failed:
        raise ApiError("Invalid", REJECTED, details={}) from failed
    return _as_object(out)


def _applied(document: Any, op: Json) -> Any:
    """One operation, in place. The real server's library lets `replace` set a member that was not there."""
    if op.get("op") == "replace" and "value" in op:
        parent, last = jsonpointer.JsonPointer(op.get("path", "")).to_last(document)
        if isinstance(parent, dict) and last is not None:
            parent[last] = op["value"]
            return document
    return jsonpatch.JsonPatch([op]).apply(document, in_place=True)


def merge_patch(obj: Json, patch: Any) -> Json:
    """A new object. Raises ApiError BadRequest where the patch is no object."""
    if not isinstance(patch, dict):
        raise ApiError("BadRequest", "Invalid JSON Patch")
    return _as_object(merge(deep_copy(obj), deep_copy(patch)))


def _as_object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise ApiError("Invalid", REJECTED, details={})
    return value
