"""One change of one object on its way to the stream: where it goes, what identifies it, what it carries.

The body is the object's JSON without managedFields and without kubectl's last-applied annotation: they are two thirds
of the bytes, no service reads them, and the annotation of a Secret would hold the secret. A child travels in its Gryvia
owner's partition, so that one replica of a service sees an object and all that belongs to it in one partition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson

from gryvia_common.bus.objects import MESSAGE_ID_HEADER, Op, object_headers
from gryvia_common.bus.subjects import object_subject, partition_of
from gryvia_common.errors import Transient
from gryvia_common.kube.children import owner_of
from gryvia_common.kube.objects import Json, Key
from gryvia_common.kube.resources import GROUP, Resource

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SOURCE = "/gryvia/bridge"
# What headers may take of the server's limit on a message.
HEADER_ROOM = 4096


@dataclass(frozen=True, slots=True)
class Envelope:
    """`version` is the resourceVersion as a number, `received` the monotonic second it came in. `body` is empty for a
    deletion. `replaces` (with a sequence) is set for the tombstone of a subject that is not the key's own any more."""

    plural: str
    key: Key
    partition: int
    uid: str
    version: int
    op: Op
    body: bytes
    received: float
    replaces: int | None = None

    @property
    def subject(self) -> str:
        return object_subject(self.plural, self.partition, self.key.namespace, self.key.name)

    def message(self, max_payload: int) -> tuple[bytes, dict[str, str]]:
        """Body and headers (CloudEvents, binary mode, required attributes only: each header costs every reader). Above
        the server's limit the body stays away and a header says so."""
        omitted = len(self.body) > max_payload - HEADER_ROOM
        headers = object_headers(self.uid, self.version, self.op, body_omitted=omitted)
        headers["ce-specversion"] = "1.0"
        headers["ce-id"] = headers[MESSAGE_ID_HEADER]
        headers["ce-type"] = f"gryvia.object.{self.op}"
        headers["ce-source"] = SOURCE
        return b"" if omitted else self.body, headers


def envelope(resource: Resource, obj: Json, op: Op, received: float) -> Envelope:
    """Without the body, which costs more than all the rest: it is added when the change is due. Transient when `obj` is
    no object of an API server."""
    try:
        meta = obj["metadata"]
        key = Key(meta.get("namespace") or "", meta["name"])
        uid, version = meta["uid"], int(meta["resourceVersion"])
    except (KeyError, TypeError, ValueError) as error:
        raise Transient(f"{resource.plural}: an object without name, uid or resourceVersion: {error!r}") from error
    return Envelope(resource.plural, key, _partition(resource, obj, key), uid, version, op, b"", received)


def with_body(change: Envelope, obj: Json) -> Envelope:
    """Takes `obj` over (it is changed)."""
    meta = obj["metadata"]
    meta.pop("managedFields", None)
    annotations = meta.get("annotations")
    if annotations and annotations.pop(LAST_APPLIED, None) is not None and not annotations:
        del meta["annotations"]
    return replace(change, body=orjson.dumps(obj))


def _partition(resource: Resource, obj: Json, key: Key) -> int:
    owner = None if resource.group == GROUP else owner_of(obj)
    return partition_of(owner.namespace, owner.name) if owner else partition_of(*key)
