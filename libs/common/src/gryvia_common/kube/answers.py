"""What an answer of the API server means for the caller: HTTP status and body in, one of the platform's four errors
out.

Invariant: only a well-formed answer of an API server is believed. A status code with an HTML page, a proxy's text or
half a JSON document says nothing about Kubernetes: it is Transient, whatever the code (a proxy's 404 must not look like
a deletion). 401 is Transient: tokens rotate and nothing about the object is wrong. 403 is Terminal, its reason tells
the cases apart that a caller may want to treat alike: `Forbidden` (RBAC or an admission rule), `NamespaceTerminating`,
`ExceededQuota`.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping
from typing import NoReturn

import orjson

from gryvia_common.errors import Conflict, Gone, GryviaError, Terminal, Transient
from gryvia_common.kube.objects import Json

# What kube-apiserver says, as plain text, about a path whose API group or type it does not serve.
UNSERVED = b"404 page not found"
_LARGE = 2**18
# Of an admission plugin of a server that has just come up.
_UNREADY = "not yet ready to handle request"
_WAITING = re.compile(r"is waiting to start|ContainerCreating|PodInitializing")
_NO_PREVIOUS = re.compile(r"previous terminated container .* not found")


class Silent(Transient):
    """Nothing came on a watch for as long as the caller wanted to wait: a half-open connection, or just nothing to say."""


class Expired(Gone):
    """410: the resourceVersion or continue token is older than the server's memory. Only a new LIST helps."""


def raise_for(what: str, code: int, headers: Mapping[str, str], body: bytes, *, collection: bool = False) -> NoReturn:
    """Raises the error that `code` (>= 300) and `body` amount to. `what` names the request, for the message.
    `collection`: the path is a whole type, so that "404 page not found" means that the type is not served (yet)."""
    status = _status(body)
    if status is None:
        if code == 404 and collection and body.strip() == UNSERVED:
            raise Gone(f"{what}: the API server does not serve this type")
        raise Transient(
            f"{what}: HTTP {code} without a Kubernetes Status: {_excerpt(body)}", retry_after=_retry_after(headers)
        )
    raise error_of(what, code, status, headers)


def error_of(what: str, code: int, status: Json, headers: Mapping[str, str] | None = None) -> GryviaError:
    """The error for a Status object, as a body or as an ERROR event in a watch."""
    reason = str(status.get("reason") or "")
    message = f"{what}: {status.get('message') or reason or f'HTTP {code}'}"
    match code:
        case 404:
            return Gone(message)
        case 409:
            return Conflict(message)
        case 410:
            return Expired(message)
        case 401 | 408 | 429:
            return Transient(message, retry_after=_retry_after(headers or {}, status))
        case 403 if _UNREADY in message:
            return Transient(message)
        case 403:
            return Terminal(message, reason=_forbidden_reason(status))
        case 400 if _WAITING.search(message):
            return Transient(message)
        case 400 if _NO_PREVIOUS.search(message):
            return Gone(message)
        case _ if 400 <= code < 500:
            return Terminal(message, reason=reason or "Invalid")
        case _:
            return Transient(message, retry_after=_retry_after(headers or {}, status))


def json_of(what: str, body: bytes) -> Json:
    """The JSON object of a good answer; Transient when it is none (cut off, or a page of something in between)."""
    try:
        value = _parsed(body)
    except orjson.JSONDecodeError as error:
        raise Transient(f"{what}: the answer is not JSON: {_excerpt(body)}") from error
    if not isinstance(value, dict):
        raise Transient(f"{what}: the answer is not a JSON object: {_excerpt(body)}")
    return value


def _parsed(body: bytes) -> object:
    """A page of a list is a hundred thousand new containers and no garbage: the collector, which would look through
    them again and again while they are made, takes half of the time, so it waits until the page is there."""
    if len(body) < _LARGE or not gc.isenabled():
        return orjson.loads(body)
    gc.disable()
    try:
        return orjson.loads(body)
    finally:
        gc.enable()


def _status(body: bytes) -> Json | None:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and value.get("kind") == "Status" else None


def _forbidden_reason(status: Json) -> str:
    causes = (status.get("details") or {}).get("causes") or []
    if any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
        return "NamespaceTerminating"
    return "ExceededQuota" if "exceeded quota" in str(status.get("message")) else "Forbidden"


def _retry_after(headers: Mapping[str, str], status: Json | None = None) -> float | None:
    """Seconds, from the header (the date form is not used by API servers), else from the Status' details."""
    text = headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text)
    seconds = ((status or {}).get("details") or {}).get("retryAfterSeconds")
    return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None


def _excerpt(body: bytes) -> str:
    text = body[:200].decode("utf-8", "replace").strip()
    return repr(text) if text else "an empty body"
