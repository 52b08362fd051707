"""An HTTP request as the handlers see it: read once, limited in size, its refusals as Status bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from gryvia_devcluster.api import protobuf
from gryvia_devcluster.api.options import FieldValidation, WriteOptions
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Json

MAX_BODY = 3 * 1024 * 1024
_VALIDATIONS: dict[str, FieldValidation] = {"Strict": "Strict", "Warn": "Warn", "Ignore": "Ignore", "": "Warn"}


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer; streams are written by their handlers."""

    body: bytes
    code: int = 200
    content_type: str = "application/json"


def json_reply(value: Any, code: int = 200) -> Reply:
    return Reply(orjson.dumps(value), code)


def success(kind: str, group: str, name: str, uid: str) -> Reply:
    """What DELETE answers when the object is gone."""
    details = {"name": name, "kind": kind, "uid": uid, **({"group": group} if group else {})}
    return json_reply({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})


async def read_body(request: web.BaseRequest) -> Any:
    """The body as JSON, or as YAML where the client says so; None when there is none. Raises ApiError."""
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise ApiError("RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}") from error
    if not raw:
        return None
    kind = request.headers.get("Content-Type", "")
    if "protobuf" in kind:
        return protobuf.decode(raw)
    if "cbor" in kind:
        raise ApiError(
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, "
            "application/yaml",
        )
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if "yaml" in kind:
            return _yaml(raw)
        raise ApiError("BadRequest", f"the object provided is unrecognized: {error}") from error


def _yaml(raw: bytes) -> Any:
    import yaml

    try:
        return yaml.load(raw, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ApiError("BadRequest", f"error decoding YAML: {error}") from error


def write_options(request: web.BaseRequest, query: dict[str, str]) -> WriteOptions:
    """The query's fieldManager, force, dryRun and fieldValidation. Raises ApiError."""
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise ApiError("Invalid", f'dryRun: Unsupported value: "{dry_run}": supported values: "All"')
    validation = _VALIDATIONS.get(query.get("fieldValidation", ""))
    if validation is None:
        raise ApiError(
            "Invalid",
            f'fieldValidation: Unsupported value: "{query["fieldValidation"]}": supported values: "Ignore", "Warn", "Strict"',
        )
    agent = request.headers.get("User-Agent", "unknown").split("/")[0].strip()
    return WriteOptions(
        manager=query.get("fieldManager") or agent or "unknown",
        dry_run=bool(dry_run),
        force=query.get("force") in ("true", "1"),
        field_validation=validation,
    )


def delete_options(body: Any, query: dict[str, str]) -> Json:
    """metav1.DeleteOptions from the body, or from the query as older clients send them. Raises ApiError."""
    options: Json = dict(body) if isinstance(body, dict) else {}
    for field in ("propagationPolicy", "gracePeriodSeconds", "orphanDependents"):
        if field in query:
            options.setdefault(field, query[field])
    if options.get("gracePeriodSeconds") is not None:
        options["gracePeriodSeconds"] = int(options["gracePeriodSeconds"])
    if str(options.get("orphanDependents")).lower() == "true":
        options["propagationPolicy"] = "Orphan"
    policy = options.get("propagationPolicy")
    if policy not in (None, "", "Background", "Foreground", "Orphan"):
        raise ApiError(
            "Invalid",
            f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "{policy}": supported values: '
            '"Foreground", "Background", "Orphan"',
        )
    options["propagationPolicy"] = policy or None
    return options
