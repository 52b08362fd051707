"""From JSON to the typed Object a decide function gets, and from a broken spec to a sentence a person can act on.

The API server has validated the spec already; this is the second look, for what slipped past an old CRD. An unreadable status
counts as an empty one: it is ours to write, and refusing to work because of it would wedge the object for ever.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import structlog
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gryvia_common.errors import Terminal
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.kind import Kind
from gryvia_common.kinds.model import Spec, Status
from gryvia_common.kube.objects import Json, annotations_of, is_deleting, labels_of, metadata
from gryvia_common.runtime.world import Object

S = TypeVar("S", bound=Spec)
T = TypeVar("T", bound=Status)

SHOWN_ERRORS = 5
SHOWN_VALUE = 80


def parse_object(kind: Kind[S, T], raw: Json) -> Object[S, T]:
    """Raises Terminal with every broken field, its value and what was expected."""
    try:
        spec = kind.spec.model_validate(raw.get("spec") or {})
    except ValidationError as error:
        raise Terminal(describe(error, "spec"), reason="InvalidSpec") from error
    meta = metadata(raw)
    return Object(
        raw=raw,
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        uid=meta["uid"],
        generation=int(meta.get("generation") or 1),
        deleting=is_deleting(raw),
        labels=labels_of(raw),
        annotations=annotations_of(raw),
        created_at=parse_timestamp(meta["creationTimestamp"]),
        spec=spec,
        status=_status(kind, raw),
    )


def describe(error: ValidationError, root: str) -> str:
    """`spec.maxTrials: Input should be a valid integer, got "ten"`; several are joined with `; `."""
    errors = error.errors(include_url=False, include_context=False)
    texts = [_describe_one(detail, root) for detail in errors[:SHOWN_ERRORS]]
    more = len(errors) - SHOWN_ERRORS
    return "; ".join(texts + ([f"and {more} more"] if more > 0 else []))


def status_keys(kind: Kind[Any, Any]) -> frozenset[str]:
    """The wire names of the status fields that are ours to take away."""
    return frozenset(info.alias or name for name, info in kind.status.model_fields.items())


def _describe_one(detail: ErrorDetails, root: str) -> str:
    path = root
    for part in detail["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    if detail["type"] == "missing":
        return f"{path}: required"
    value = json.dumps(detail["input"], default=str)
    shown = value if len(value) <= SHOWN_VALUE else value[:SHOWN_VALUE] + "…"
    return f"{path}: {detail['msg']}, got {shown}"


def _status(kind: Kind[S, T], raw: Json) -> T:
    try:
        return kind.status.model_validate(raw.get("status") or {})
    except ValidationError as error:
        structlog.get_logger("parsing").warning(
            "unreadable status taken as empty",
            kind=kind.name,
            name=metadata(raw)["name"],
            error=describe(error, "status"),
        )
        return kind.status()
