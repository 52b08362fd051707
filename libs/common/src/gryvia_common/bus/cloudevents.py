"""Domain events on the wire: CloudEvents 1.0 in binary mode, so that headers route and the body is just our JSON.

The NATS binding puts every attribute into a `ce-` header (percent-encoded), the media type as `ce-datacontenttype`.
`content-type` is sent beside it, because readers written for the HTTP binding look for that one. `Nats-Msg-Id` is the
event's id, so JetStream drops a repeat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, unquote

import orjson
from cloudevents.core.v1.event import CloudEvent

from gryvia_common.bus.events import DomainEvent, event_class
from gryvia_common.bus.objects import MESSAGE_ID_HEADER
from gryvia_common.bus.subjects import parse_event_subject
from gryvia_common.errors import Terminal
from gryvia_common.kube.objects import Json

_PREFIX = "ce-"
_MEDIA_TYPE = "application/json"
# The binding leaves printable ASCII as it is, but for the blank, the double quote and the percent sign itself.
_AS_IS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_PLAIN = re.compile(f"[{re.escape(_AS_IS)}]*")


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event as read from the stream. `data` is its JSON; `parse` gives the typed one. `sequence`: where it is in
    the stream."""

    id: str
    type: str
    source: str
    subject: str
    time: datetime
    noun: str
    verb: str
    namespace: str
    name: str
    data: Json
    sequence: int

    def parse(self) -> DomainEvent | None:
        """The typed event; None for a type that this version does not know. Raises Terminal when its data does not
        fit."""
        cls = event_class(self.type)
        if cls is None:
            return None
        try:
            return cls.model_validate(self.data)
        except ValueError as error:
            raise Terminal(f"event {self.id} of type {self.type} has unreadable data: {error}") from error


def event_message(event: DomainEvent, *, source: str, at: datetime) -> tuple[dict[str, str], bytes]:
    """Headers and body. `source` is the service's name; the CloudEvents source is `/gryvia/<service>`."""
    subject = f"{event.namespace}/{event.name}" if event.namespace else event.name
    checked = CloudEvent(
        attributes={
            "id": event.id,
            "source": f"/gryvia/{source}",
            "type": event.type,
            "specversion": "1.0",
            "subject": subject,
            "time": at,
            "datacontenttype": _MEDIA_TYPE,
        }
    )
    headers = {f"{_PREFIX}{name}": _encode(value) for name, value in checked.get_attributes().items()}
    headers["content-type"] = _MEDIA_TYPE
    headers[MESSAGE_ID_HEADER] = event.id
    return headers, event.model_dump_json(by_alias=True, exclude_none=True).encode()


def received_event(subject: str, headers: Mapping[str, str], body: bytes, sequence: int) -> ReceivedEvent:
    """Raises Terminal for a message that is no CloudEvent in binary mode."""
    try:
        address = parse_event_subject(subject)
        values = {name: unquote(headers[f"{_PREFIX}{name}"]) for name in ("id", "type", "source", "subject", "time")}
        data = orjson.loads(body)
        time = datetime.fromisoformat(values["time"])
    except (KeyError, ValueError) as error:
        raise Terminal(f"message {sequence} on {subject} is not a CloudEvent: {error}") from error
    if not isinstance(data, dict):
        raise Terminal(f"message {sequence} on {subject} is not a CloudEvent of ours: its body is not a JSON object")
    return ReceivedEvent(
        id=values["id"],
        type=values["type"],
        source=values["source"],
        subject=values["subject"],
        time=time,
        noun=address.noun,
        verb=address.verb,
        namespace=address.namespace,
        name=address.name,
        data=data,
        sequence=sequence,
    )


def _encode(value: object) -> str:
    text = value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else str(value)
    return text if _PLAIN.fullmatch(text) else quote(text, safe=_AS_IS)
