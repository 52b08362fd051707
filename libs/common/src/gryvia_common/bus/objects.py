"""What one message of the OBJECTS stream says, in headers that can be read without its body.

The bridge writes these headers and reads them back as its checkpoint; services read them to drop what is older than
what they know. A tombstone carries a time to live, so that the stream holds the living objects and not everything
that ever was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from gryvia_common.bus.subjects import parse_object_subject
from gryvia_common.errors import Terminal

Op = Literal["applied", "deleted"]

UID_HEADER = "gryvia-uid"
VERSION_HEADER = "gryvia-rv"
OP_HEADER = "gryvia-op"
BODY_HEADER = "gryvia-body"
MESSAGE_ID_HEADER = "Nats-Msg-Id"
TTL_HEADER = "Nats-TTL"
TOMBSTONE_TTL = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class ObjectMessage:
    """One object's newest known state. `version` is the resourceVersion as a number. `body` is the object's JSON; it
    is empty for a deletion, and when the object is too large for a message (`body_omitted`: read it from the API)."""

    plural: str
    partition: int
    namespace: str
    name: str
    uid: str
    version: int
    op: Op
    body: bytes
    sequence: int
    body_omitted: bool = False


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The same without the body: what the stream holds under `subject`, and the sequence to compare and set against."""

    subject: str
    sequence: int
    uid: str
    version: int
    op: Op


def object_headers(uid: str, version: int, op: Op, *, body_omitted: bool = False) -> dict[str, str]:
    """The headers of one object's message. The message id is the content's identity, never a random number: whoever
    sends the same state twice is recognised."""
    headers = {
        MESSAGE_ID_HEADER: f"{uid}/{version}/{op}",
        UID_HEADER: uid,
        VERSION_HEADER: str(version),
        OP_HEADER: op,
    }
    if op == "deleted":
        headers[TTL_HEADER] = f"{int(TOMBSTONE_TTL.total_seconds())}s"
    if body_omitted:
        headers[BODY_HEADER] = "omitted"
    return headers


def stored_object(subject: str, headers: Mapping[str, str], sequence: int) -> StoredObject:
    """Raises Terminal for a message that object_headers did not make."""
    uid, version, op = _identity(subject, headers)
    return StoredObject(subject, sequence, uid, version, op)


def object_message(subject: str, headers: Mapping[str, str], body: bytes, sequence: int) -> ObjectMessage:
    """Raises Terminal for a message that object_headers did not make."""
    uid, version, op = _identity(subject, headers)
    address = parse_object_subject(subject)
    omitted = BODY_HEADER in headers
    return ObjectMessage(
        address.plural, address.partition, address.namespace, address.name, uid, version, op, body, sequence, omitted
    )


def _identity(subject: str, headers: Mapping[str, str]) -> tuple[str, int, Op]:
    try:
        uid, version, op = headers[UID_HEADER], int(headers[VERSION_HEADER]), headers[OP_HEADER]
    except (KeyError, ValueError) as error:
        raise Terminal(
            f"message on {subject} has no readable {error} header; only the bridge may publish there"
        ) from error
    if op == "applied":
        return uid, version, "applied"
    if op == "deleted":
        return uid, version, "deleted"
    raise Terminal(f"message on {subject} has {OP_HEADER} {op!r}, must be applied or deleted")
