"""The JetStream API over a Link: one call, its errors told apart by what the caller can do.

nats-py's own manager is not used for calls, because it waits for its deadline through an outage; its configuration
classes are.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gryvia_common.bus.link import Link
from gryvia_common.errors import Conflict, Gone, GryviaError, Terminal, Transient

_WRONG_LAST_SEQUENCE = (10071, 10164)
_INVALID_CONFIG = 10052  # the server calls it a 500, but no repetition mends a configuration


@dataclass(frozen=True, slots=True)
class StreamState:
    """`created` tells one stream from another of the same name: a wiped server makes a new one."""

    created: str
    first_sequence: int
    last_sequence: int
    messages: int
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message read back. `time` is the server's RFC 3339 text, exact to the nanosecond."""

    subject: str
    sequence: int
    time: str
    headers: Mapping[str, str]
    body: bytes


async def call(link: Link, verb: str, request: object = None) -> dict[str, Any]:
    """`$JS.API.<verb>`. Raises Gone (404), Conflict (wrong last sequence), Terminal (other 4xx) or Transient."""
    answer = await link.request(f"$JS.API.{verb}", b"" if request is None else orjson.dumps(request))
    reply: dict[str, Any] = orjson.loads(answer.data)
    if "error" in reply:
        raise as_error(verb, reply["error"])
    return reply


def as_error(what: str, error: Mapping[str, Any]) -> GryviaError:
    """The server's error as one of ours."""
    code, err_code = int(error.get("code", 500)), int(error.get("err_code", 0))
    text = f"{what}: {error.get('description', 'unknown error')} ({err_code or code})"
    if err_code in _WRONG_LAST_SEQUENCE:
        return Conflict(text)
    if code == 404:
        return Gone(text)
    refused = err_code == _INVALID_CONFIG or (400 <= code < 500 and code not in (408, 429))
    return Terminal(text, reason="BusRefused") if refused else Transient(text)


async def stream_state(link: Link, stream: str) -> StreamState:
    """Raises Gone when there is no such stream."""
    reply = await call(link, f"STREAM.INFO.{stream}")
    state = reply["state"]
    return StreamState(
        reply["created"], int(state["first_seq"]), int(state["last_seq"]), int(state["messages"]), reply["config"]
    )


async def last_message(link: Link, stream: str, subject: str) -> StoredMessage:
    """The last message of a subject, from the stream's leader (a direct get may answer from a replica that is
    behind). Raises Gone."""
    return await _stored(link, stream, {"last_by_subj": subject})


async def message_at(link: Link, stream: str, sequence: int) -> StoredMessage:
    """Raises Gone when the sequence is not (any more) in the stream."""
    return await _stored(link, stream, {"seq": sequence})


async def _stored(link: Link, stream: str, request: Mapping[str, object]) -> StoredMessage:
    message = (await call(link, f"STREAM.MSG.GET.{stream}", request))["message"]
    return StoredMessage(
        message["subject"],
        int(message["seq"]),
        message["time"],
        parse_headers(base64.b64decode(message.get("hdrs", ""))),
        base64.b64decode(message.get("data", "")),
    )


def parse_headers(block: bytes) -> dict[str, str]:
    """A NATS/1.0 header block as the API returns it."""
    lines = block.decode().split("\r\n")[1:]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines) if key}
