"""Kubernetes' protobuf bodies, read into JSON objects.

kubectl's typed commands (create namespace, create configmap, auth can-i) send protobuf without asking, so a server has to
read it. Only reading is done here: an answer in JSON is always acceptable to them. Field numbers come from the same table
as the JSON fields; Go writes every field that is not a pointer, so zero values of those are dropped, as omitempty would.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from gryvia_devcluster.api.fields import field_table
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Json

_MAGIC = b"k8s\x00"
_Field = tuple[int, int | bytes]


def decode(raw: bytes) -> Json:
    """The object in the envelope (runtime.Unknown: typeMeta 1, raw 2). Raises ApiError."""
    if not raw.startswith(_MAGIC):
        raise ApiError("BadRequest", "provided data does not appear to be a protobuf message, expected prefix k8s\\x00")
    try:
        envelope = dict(_fields(raw[len(_MAGIC) :]))
        meta = {number: _text(value) for number, value in _fields(_bytes(envelope[1]))}
        api_version, kind = meta.get(1, ""), meta.get(2, "")
        name = _type_name(api_version, kind)
        if name not in field_table():
            raise ApiError("UnsupportedMediaType", f"{api_version} {kind} cannot be read from protobuf; send JSON")
        return {"apiVersion": api_version, "kind": kind, **_message(_bytes(envelope.get(2, b"")), name)}
    except (IndexError, KeyError, TypeError, UnicodeDecodeError, struct.error) as error:
        raise ApiError("BadRequest", f"the protobuf body cannot be read: {error!r}") from error


def _type_name(api_version: str, kind: str) -> str:
    if kind == "DeleteOptions":
        return "meta.v1.DeleteOptions"
    group, _, version = api_version.rpartition("/")
    return f"{group.partition('.')[0] or 'core'}.{version}.{kind}"


def _fields(data: bytes) -> Iterator[_Field]:
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        match key & 7:
            case 0:
                value, position = _varint(data, position)
                yield key >> 3, value
            case 1:
                yield key >> 3, data[position : position + 8]
                position += 8
            case 2:
                size, position = _varint(data, position)
                if position + size > len(data):
                    raise IndexError("a field is longer than the message")
                yield key >> 3, data[position : position + size]
                position += size
            case 5:
                yield key >> 3, data[position : position + 4]
                position += 4
            case wire:
                raise TypeError(f"wire type {wire}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _message(data: bytes, name: str) -> Json:
    """The struct as JSON: zero values of fields that are not pointers are left out."""
    known: dict[str, list[Any]] = field_table()[name]["p"]
    obj: Json = {}
    for number, raw in _fields(data):
        entry = known.get(str(number))
        if entry is None:
            continue
        field, code, pointer = entry
        if not field:
            obj |= _message(_bytes(raw), code)
        elif code[0] == "[":
            obj.setdefault(field, []).append(_value(raw, code[1:]))
        elif code[0] == "{":
            pair = dict(_fields(_bytes(raw)))
            obj.setdefault(field, {})[_text(pair.get(1, b""))] = _value(pair.get(2, b""), code[1:])
        else:
            value = _value(raw, code)
            if pointer or value not in ("", 0, False, None, {}):
                obj[field] = value
    return obj


def _value(raw: int | bytes, code: str) -> Any:
    match code:
        case "i":
            number = int(raw or 0)
            return number - (1 << 64) if number >= 1 << 63 else number
        case "b":
            return bool(raw)
        case "s":
            return _text(raw)
        case "n":
            return struct.unpack("<d", _bytes(raw))[0]
        case "y":
            return base64.b64encode(_bytes(raw)).decode()
        case "q":
            return _text(dict(_fields(_bytes(raw))).get(1, b""))
        case "x":
            return _int_or_string(dict(_fields(_bytes(raw))))
        case "t" | "m":
            return _time(dict(_fields(_bytes(raw))), micro=code == "m")
        case "*":
            inner = _bytes(dict(_fields(_bytes(raw))).get(1, b""))
            return orjson.loads(inner) if inner else {}
    if code[0] == "[":
        return [_value(item, code[1:]) for _, item in _fields(_bytes(raw))]
    return _message(_bytes(raw), code)


def _int_or_string(parts: dict[int, int | bytes]) -> int | str:
    if parts.get(1):
        return _text(parts.get(3, b""))
    number: int = _value(parts.get(2, 0), "i")
    return number


def _time(parts: dict[int, int | bytes], *, micro: bool) -> str | None:
    seconds: int = _value(parts.get(1, 0), "i")
    if not parts or seconds <= 0:
        return None
    moment = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment}.{int(parts.get(2, 0)) // 1000:06d}Z" if micro else f"{moment}Z"


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise TypeError("a number where bytes belong")
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()
