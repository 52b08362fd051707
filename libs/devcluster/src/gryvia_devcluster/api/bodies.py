"""Bodies of requests: objects, patches and options, as JSON or YAML or, for built-in types, protobuf.

What cannot be read is refused with the words of the Go decoders, which differ by what the body was to be: an object has to say its
kind and version, a patch need not. A key that stands twice in an object is found here, because nobody can see it later.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import orjson
from aiohttp import web

from gryvia_devcluster.api import protobuf
from gryvia_devcluster.api.gojson import syntax_error
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import PatchType, ResourceType

MAX_BODY = 3 * 1024 * 1024
_SHOWN = 30
_FRACTION = re.compile(rb"\d(\.0|[eE])")
_ACCEPTED = ("json", "yaml", "protobuf", "patch")
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_PATCH_TARGETS = {
    "application/json-patch+json": (list, "[]handlers.jsonPatchOp"),
    "application/merge-patch+json": (dict, "map[string]interface {}"),
    "application/strategic-merge-patch+json": (dict, "map[string]interface {}"),
}


class _Unreadable(Exception):
    """The text says why, in the words of the decoder."""


async def read_body(request: web.BaseRequest) -> Any:
    """Options and the like; None when there are none. Raises ApiError."""
    raw = await _read(request)
    if not raw:
        return None
    media = _media(request)
    if "protobuf" in media:
        return protobuf.decode(raw)
    try:
        return _parse(raw, media)
    except _Unreadable as error:
        raise ApiError("BadRequest", f"the object provided is unrecognized: {error}") from error


async def read_object(request: web.BaseRequest, rt: ResourceType) -> tuple[Any, list[str]]:
    """The object to be written, and the paths of keys that stand in it twice. Raises ApiError."""
    raw, media = await _read(request), _media(request)
    if "protobuf" in media:
        return protobuf.decode(raw), []
    try:
        return _object(raw, media, rt), _duplicates(raw) if "yaml" not in media else []
    except _Unreadable as error:
        why = f"the object provided is unrecognized (must be of type {rt.kind}): {error} ({_summary(raw)})"
        raise ApiError("BadRequest", why) from error


async def read_patch(request: web.BaseRequest, kind: PatchType) -> Any:
    """Raises ApiError."""
    raw = await _read(request)
    try:
        if kind == "application/apply-patch+yaml":
            return _parse(raw, "yaml") if raw else None
        wanted, target = _PATCH_TARGETS[kind]
        patch = _parse(raw, "json")
        if patch is not None and not isinstance(patch, wanted):
            raise _Unreadable(f"json: cannot unmarshal {_go_kind(patch)} into Go value of type {target}")
        return wanted() if patch is None else patch
    except _Unreadable as error:
        told = "error decoding YAML: error converting YAML to JSON" if "apply" in kind else "error decoding patch"
        raise ApiError("BadRequest", f"{told}: {error}") from error


async def _read(request: web.BaseRequest) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise ApiError("RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}") from error


def _media(request: web.BaseRequest) -> str:
    media = request.headers.get("Content-Type", "")
    if media and not any(accepted in media for accepted in _ACCEPTED):
        raise ApiError(
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, "
            "application/yaml, application/vnd.kubernetes.protobuf",
        )
    return media


def _parse(raw: bytes, media: str) -> Any:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if "yaml" in media:
            return _yaml(raw)
        raise _Unreadable(syntax_error(raw) or str(error)) from error
    # 1.0 is stored as 1, as by the real server, which prints a float without a fraction so.
    return _rounded(body) if _FRACTION.search(raw) else body


def _object(raw: bytes, media: str, rt: ResourceType) -> Any:
    try:
        body = _parse(raw, media)
    except _Unreadable as error:
        told = "" if "yaml" in media else "couldn't get version/kind; json parse error: "
        raise _Unreadable(f"{told}{error}") from error
    if body is not None and not isinstance(body, dict):
        why = f"json: cannot unmarshal {_go_kind(body)} into Go value of type {_TYPE_META}"
        raise _Unreadable(f"couldn't get version/kind; json parse error: {why}")
    if rt.schema is not None:  # a built-in type is taken from the path
        for field, label in (("kind", "Kind"), ("apiVersion", "apiVersion")):
            if not (body or {}).get(field):
                raise _Unreadable(f"Object '{label}' is missing in '{raw.decode(errors='replace')}'")
    return body


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _yaml(raw: bytes) -> Any:
    import yaml

    try:
        return yaml.load(raw, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        # Go's parser counts the lines of what it scans from one and of what it parses from zero.
        marks = [mark.line for mark in (error.context_mark, error.problem_mark) if mark is not None and mark.line]
        line = (marks[0] if marks else 0) + isinstance(error, yaml.scanner.ScannerError)
        raise _Unreadable(f"yaml: {f'line {line}: ' if line else ''}{error.problem}") from error
    except yaml.YAMLError as error:
        raise _Unreadable(f"yaml: {error}") from error


def _duplicates(raw: bytes) -> list[str]:
    found: list[str] = []
    with suppress(RecursionError):  # nested so deep that it is refused later
        _find_duplicates(json.loads(raw, object_pairs_hook=_Pairs), "", found)
    return found


class _Pairs(tuple[tuple[str, Any], ...]):
    """An object as it was written."""

    __slots__ = ()


def _find_duplicates(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, each in value:
            where = f"{path}.{key}" if path else key
            if key in seen:
                found.append(where)
            seen.add(key)
            _find_duplicates(each, where, found)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            _find_duplicates(each, f"{path}[{index}]", found)


def _go_kind(value: Any) -> str:
    kinds = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
    return kinds[type(value)]


def _summary(raw: bytes) -> str:
    """What of a body is repeated in a refusal."""
    if not raw:
        return "<empty>"
    more = " ..." if len(raw) > _SHOWN else ""
    shown = raw[:_SHOWN]
    return (shown.decode(errors="replace") if raw[:1] == b"{" else shown.hex()) + more
