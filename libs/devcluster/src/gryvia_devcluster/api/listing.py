"""LIST over HTTP: selectors, resourceVersion, and pages of one consistent view.

A continue token holds the version of the first page and the last key sent. The next page is cut from the state at that
version (the store undoes its history), so nothing is kept per token and a token expires exactly with the history.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

import orjson

from gryvia_devcluster.api import refusals
from gryvia_devcluster.api.catalog import Served
from gryvia_devcluster.api.gojson import syntax_error
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store import Entry, FieldSelector, Key, LabelSelector, Store
from gryvia_devcluster.types import Json

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
    "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing "
    "with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the "
    "time the first chunk was returned and now may show up in the list."
)


_INTEGER = re.compile(r"[+-]?[0-9]+")
_BASE64 = re.compile(r"[A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Page:
    entries: list[Entry]
    metadata: Json


def selectors(served: Served, query: Mapping[str, str]) -> tuple[LabelSelector, FieldSelector]:
    return (
        LabelSelector(query.get("labelSelector", "")),
        FieldSelector(query.get("fieldSelector", ""), served.refuses_field),
    )


def page(store: Store, served: Served, namespace: str | None, query: Mapping[str, str]) -> Page:
    """Raises ApiError: Expired for an old token or version, BadRequest for a malformed one."""
    label, field = selectors(served, query)
    check_options(query, watch=False)
    resource = served.rt.group_resource
    rv, after = _start(store, query)
    name = field.name()
    if name is not None and namespace is not None and rv == store.rv:
        entry = store.get(resource, Key(namespace, name))
        entries = [entry] if entry else []
    else:
        entries = store.entries_at(resource, namespace, rv)
    if after is not None:
        entries = entries[bisect_right(entries, after, key=attrgetter("key")) :]
    if label or field:
        entries = [entry for entry in entries if label.matches(entry.obj) and field.matches(entry.obj)]
    metadata: Json = {"resourceVersion": str(rv)}
    limit = integer(query, "limit")
    if 0 < limit < len(entries):
        rest = len(entries) - limit
        entries = entries[:limit]
        metadata["continue"] = _token(rv, entries[-1].key)
        if not label and not field:
            metadata["remainingItemCount"] = rest
    return Page(entries, metadata)


def _start(store: Store, query: Mapping[str, str]) -> tuple[int, Key | None]:
    token = query.get("continue", "")
    if token:
        rv, after = _read_token(token)
        if rv == -1:
            return store.rv, after
        if rv < store.history.horizon:
            error = ApiError("Expired", _EXPIRED)
            error.list_metadata["continue"] = _token(-1, after)
            raise error
        return rv, after
    wanted = version(query, "invalid resource version: ")
    check_not_ahead(store, wanted)
    if query.get("resourceVersionMatch") == "Exact":
        return wanted, None
    return store.rv, None


def _token(rv: int, key: Key) -> str:
    return base64.urlsafe_b64encode(orjson.dumps({"rv": rv, "start": list(key)})).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, Key]:
    try:
        body = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(body["rv"]), Key(*body["start"])
    except (binascii.Error, orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ApiError("BadRequest", f"invalid continue token: continue key is not valid: {_why(token)}") from error


def _why(token: str) -> str:
    """What Go's decoders find wrong with a token."""
    foreign = next((place for place, letter in enumerate(token) if not _BASE64.match(letter)), None)
    if foreign is not None:
        return f"illegal base64 data at input byte {foreign}"
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except binascii.Error:
        return f"illegal base64 data at input byte {len(token)}"
    return syntax_error(raw) or "wrong form"


def check_not_ahead(store: Store, version: int) -> None:
    """Raises ApiError Timeout for a version that is still to come."""
    if version > store.rv:
        raise ApiError(
            "Timeout",
            f"Too large resource version: {version}, current: {store.rv}",
            causes=[{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            details={"retryAfterSeconds": 1},
        )


def check_options(query: Mapping[str, str], *, watch: bool) -> None:
    """Which of a list's options go together. Raises ApiError Invalid."""
    match, version, token = (query.get(name, "") for name in ("resourceVersionMatch", "resourceVersion", "continue"))
    initial = query.get("sendInitialEvents")
    field, why = "resourceVersionMatch", ""
    causes = []
    if watch and initial is not None and match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(refusals.forbidden_field(field, why))
        if match:
            causes.append(refusals.unsupported(field, match, ("NotOlderThan",)))
    elif watch and initial is None and match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(refusals.forbidden_field(field, why))
    elif token and (match or (watch and version in ("", "0"))):
        causes.append(refusals.forbidden_field(field, "resourceVersionMatch is forbidden when continue is provided"))
    elif match and not watch and not version:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(refusals.forbidden_field(field, why))
    elif match not in ("", "Exact", "NotOlderThan"):
        causes.append(refusals.unsupported(field, match, ("Exact", "NotOlderThan", "")))
    elif match == "Exact" and version == "0":
        why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        causes.append(refusals.forbidden_field(field, why))
    if causes:
        raise refusals.invalid_options("ListOptions", causes)
    if token and version not in ("", "0"):
        raise ApiError("BadRequest", "specifying resource version is not allowed when using continue")


def integer(query: Mapping[str, str], name: str) -> int:
    """0 where the query does not have it. Raises ApiError BadRequest."""
    text = query.get(name, "")
    if text and not _INTEGER.fullmatch(text):
        raise ApiError("BadRequest", f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text or 0)


def flag(query: Mapping[str, str], name: str) -> bool:
    """A query's boolean: whatever is there and is not false is true, also the empty text."""
    return name in query and query[name] != "0" and query[name].lower() != "false"


def version(query: Mapping[str, str], told: str, reason: str = "BadRequest") -> int:
    """The query's resourceVersion. Raises ApiError, its message after `told`."""
    text = query.get("resourceVersion", "")
    if text and not (text.isascii() and text.isdigit()):
        why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise ApiError(reason, told + why)
    return int(text or 0)
