"""The subjects of the bus: how an object and an event are addressed, and how an address is read back.

    gryvia.object.<plural>.<partition>.<namespace or _>.<name>     the last known state of an object
    gryvia.sync.<plural>                                           the type is complete in this stream
    gryvia.event.<noun>.<verb>.<namespace or _>.<name>             something happened

Invariant: a name and its token are one to one. NATS splits subjects at dots and reserves `*`, `>` and blanks, and
Kubernetes names may contain dots, so whatever is not a letter, a digit or one of `-_` becomes `=` and two hex digits
for each byte (quoted-printable's way: `%` would do as well, but shells and URLs treat it as theirs). The partition is
FNV-1a, which any language computes in four lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PARTITIONS = 16
OBJECTS_WILDCARD = "gryvia.object.>"
SYNC_WILDCARD = "gryvia.sync.>"
EVENTS_WILDCARD = "gryvia.event.>"

_NO_NAMESPACE = "_"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_ESCAPED = re.compile(r"(?:=[0-9A-F]{2})+")
_ALL_PLAIN = re.compile(r"[a-zA-Z0-9\-_]+")


@dataclass(frozen=True, slots=True)
class ObjectSubject:
    """The address of one object's state, taken apart. `namespace` is empty for a cluster-scoped object."""

    plural: str
    partition: int
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class EventSubject:
    """The address of one event, taken apart."""

    noun: str
    verb: str
    namespace: str
    name: str


def partition_of(namespace: str, name: str) -> int:
    """FNV-1a (32 bit) of `namespace/name` modulo PARTITIONS; for a child these are its Gryvia owner's."""
    value = 0x811C9DC5
    for byte in f"{namespace}/{name}".encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value % PARTITIONS


def object_subject(plural: str, partition: int, namespace: str, name: str) -> str:
    return f"gryvia.object.{escape(plural)}.{partition}.{_namespace_token(namespace)}.{escape(name)}"


def parse_object_subject(subject: str) -> ObjectSubject:
    """Raises ValueError for anything that object_subject did not make."""
    parts = subject.split(".")
    if len(parts) != 6 or parts[:2] != ["gryvia", "object"]:
        raise ValueError(f"{subject!r} is not the subject of an object")
    return ObjectSubject(unescape(parts[2]), int(parts[3]), _namespace(parts[4]), unescape(parts[5]))


def objects_filter(plural: str) -> str:
    """Every object of one type."""
    return f"gryvia.object.{escape(plural)}.>"


def sync_subject(plural: str) -> str:
    """The marker that says: the first complete difference of this type has been published into this stream."""
    return f"gryvia.sync.{escape(plural)}"


def event_subject(noun: str, verb: str, namespace: str, name: str) -> str:
    return f"gryvia.event.{escape(noun)}.{escape(verb)}.{_namespace_token(namespace)}.{escape(name)}"


def parse_event_subject(subject: str) -> EventSubject:
    """Raises ValueError for anything that event_subject did not make."""
    parts = subject.split(".")
    if len(parts) != 6 or parts[:2] != ["gryvia", "event"]:
        raise ValueError(f"{subject!r} is not the subject of an event")
    return EventSubject(unescape(parts[2]), unescape(parts[3]), _namespace(parts[4]), unescape(parts[5]))


def events_filter(noun: str = "*", verb: str = "*") -> str:
    """Every event of one noun, of one verb, or of both; `*` stands for any."""
    return f"gryvia.event.{noun if noun == '*' else escape(noun)}.{verb if verb == '*' else escape(verb)}.>"


def poke_subject(service: str) -> str:
    """Core NATS: some replica of the service has written something about its leases. Losing it costs one round of waiting."""
    return f"gryvia.members.{escape(service)}"


def escape(text: str) -> str:
    """One token for any text that is not empty."""
    if not text:
        raise ValueError("a subject token must not be empty")
    if _ALL_PLAIN.fullmatch(text):
        return text
    return "".join(chr(byte) if byte in _PLAIN else f"={byte:02X}" for byte in text.encode())


def unescape(token: str) -> str:
    if "=" not in token:
        return token
    return _ESCAPED.sub(lambda match: bytes.fromhex(match[0].replace("=", "")).decode(), token)


def _namespace_token(namespace: str) -> str:
    # "_" is no legal namespace, so it cannot be mistaken for one.
    return escape(namespace) if namespace else _NO_NAMESPACE


def _namespace(token: str) -> str:
    return "" if token == _NO_NAMESPACE else unescape(token)
