"""Protobuf bodies become the JSON object they stand for, and nothing else passes."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_devcluster.api.fields import field_table
from gryvia_devcluster.api.protobuf import decode
from gryvia_devcluster.errors import ApiError


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def chunk(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def encode(value: Any, code: str) -> bytes:
    """The message body of one value of the table's type: the inverse of decoding, for the test only."""
    known = field_table()[code]["p"]
    out = b""
    for number, (field, inner, _) in known.items():
        if not field:
            out += chunk(int(number), encode(value, inner))
            continue
        for item in _items(value.get(field), inner):
            out += _field(int(number), item, inner.lstrip("[{") if inner[0] in "[{" else inner)
    return out


def _items(value: Any, code: str) -> list[Any]:
    if value is None:
        return []
    if code[0] == "{":
        return list(value.items())
    return value if code[0] == "[" else [value]


def _field(number: int, item: Any, code: str) -> bytes:
    if isinstance(item, tuple):
        return chunk(number, _field(1, item[0], "s") + _field(2, item[1], code))
    match code:
        case "i" | "b":
            return varint(number << 3) + varint(int(item))
        case "s":
            return chunk(number, item.encode())
        case "y":
            return chunk(number, base64.b64decode(item))
        case "q":
            return chunk(number, chunk(1, item.encode()))
        case "x" if isinstance(item, int):
            return chunk(number, varint(1 << 3) + varint(0) + varint(2 << 3) + varint(item))
        case "x":
            return chunk(number, varint(1 << 3) + varint(1) + chunk(3, item.encode()))
        case "n":
            return varint(number << 3 | 1) + struct.pack("<d", item)
    return chunk(number, encode(item, code))


def envelope(obj: dict[str, Any], code: str) -> bytes:
    meta = chunk(1, obj["apiVersion"].encode()) + chunk(2, obj["kind"].encode())
    return b"k8s\x00" + chunk(1, meta) + chunk(2, encode(obj, code))


def test_a_pod_comes_out_as_it_went_in() -> None:
    probe = {"httpGet": {"path": "/x", "port": 80}, "periodSeconds": 5}
    container = {
        "name": "c",
        "image": "i",
        "command": ["a", "b"],
        "env": [{"name": "N", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}],
        "resources": {"limits": {"cpu": "100m"}},
        "readinessProbe": probe,
        "ports": [{"containerPort": 8080}],
    }
    volumes = [{"name": "v", "configMap": {"name": "m", "defaultMode": 0}}]
    spec = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 0}
    meta = {"name": "p", "labels": {"a": "b"}, "finalizers": ["x/y"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    assert decode(envelope(pod, "core.v1.Pod")) == pod


def test_pointers_keep_their_zero_and_the_rest_drop_it() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 0, "minReadySeconds": 0}}
    assert decode(envelope(deployment, "apps.v1.Deployment"))["spec"] == {"replicas": 0}


@given(
    st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=20), min_size=1, max_size=5),
    st.dictionaries(st.text(min_size=1, max_size=8), st.binary(max_size=20), min_size=1, max_size=5),
)
def test_any_config_map_survives(data: dict[str, str], binary: dict[str, bytes]) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
    obj["binaryData"] = {key: base64.b64encode(value).decode() for key, value in binary.items()}
    assert decode(envelope(obj, "core.v1.ConfigMap")) == obj


@given(st.binary(max_size=60))
def test_noise_is_a_refusal_and_never_a_crash(noise: bytes) -> None:
    for raw in (noise, b"k8s\x00" + noise):
        with pytest.raises(ApiError):
            decode(raw)


def test_a_kind_outside_the_table_is_named() -> None:
    body = b"k8s\x00" + chunk(1, chunk(1, b"example.com/v1") + chunk(2, b"Widget"))
    with pytest.raises(ApiError, match="Widget cannot be read from protobuf"):
        decode(body)
