"""What an HTTP request says beside its body, and the whole answers to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from gryvia_devcluster.api import refusals
from gryvia_devcluster.api.listing import flag
from gryvia_devcluster.api.options import FieldValidation, WriteOptions
from gryvia_devcluster.types import Json

MAX_MANAGER = 128
_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
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


def write_options(request: web.BaseRequest, query: dict[str, str]) -> WriteOptions:
    """The query's fieldManager, force, dryRun and fieldValidation. Raises ApiError."""
    dry_run, manager = query.get("dryRun", ""), query.get("fieldManager", "")
    causes = []
    if dry_run not in ("", "All"):
        causes.append(refusals.unsupported("dryRun", [dry_run], ("All",)))
    if len(manager.encode()) > MAX_MANAGER:
        why = f"Too long: may not be more than {MAX_MANAGER} bytes"
        causes.append({"reason": "FieldValueTooLong", "message": why, "field": "fieldManager"})
    validation = _VALIDATIONS.get(query.get("fieldValidation", ""))
    if validation is None:
        allowed = ("", "Ignore", "Strict", "Warn")
        causes.append(refusals.unsupported("fieldValidation", query["fieldValidation"], allowed))
    if request.method == "PATCH":
        applies = request.headers.get("Content-Type", "").startswith("application/apply-patch")
        if applies and not manager:
            causes.append(refusals.required("fieldManager", "is required for apply patch"))
        if not applies and "force" in query:
            causes.append(refusals.forbidden_field("force", "may not be specified for non-apply patch"))
    if causes or validation is None:
        raise refusals.invalid_options(_OPTIONS.get(request.method, "UpdateOptions"), causes)
    agent = request.headers.get("User-Agent", "unknown").split("/")[0].strip()
    return WriteOptions(
        manager=query.get("fieldManager") or agent or "unknown",
        dry_run=bool(dry_run),
        force=flag(query, "force"),
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
    policy, causes = options.get("propagationPolicy"), []
    if policy and options.get("orphanDependents") is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(refusals.invalid_value("propagationPolicy", policy, why))
    elif policy not in (None, "", "Background", "Foreground", "Orphan"):
        allowed = ("Foreground", "Background", "Orphan", "nil")
        causes.append(refusals.unsupported("propagationPolicy", policy, allowed))
    dry_run = options.get("dryRun") or []
    if any(value != "All" for value in dry_run):
        causes.append(refusals.unsupported("dryRun", dry_run, ("All",)))
    if causes:
        raise refusals.invalid_options("DeleteOptions", causes)
    if str(options.get("orphanDependents")).lower() == "true":
        policy = "Orphan"
    options["propagationPolicy"] = policy or None
    return options
