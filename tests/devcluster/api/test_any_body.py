"""Whatever a client sends, it gets an object or a refusal, and what is stored can be read, listed and printed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gryvia_devcluster.api.builtins import BUILTINS
from gryvia_devcluster.api.fields import field_table, type_name
from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.api.tables import row
from gryvia_devcluster.bootstrap import bootstrap
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import ResourceType

TYPES = {rt.kind: rt for rt in BUILTINS}
NOISE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.just("x"),
    st.builds(list),
    st.builds(dict),
    st.builds(lambda: [None]),
    st.builds(lambda: {"a": {"b": 1}}),
)
PLAIN = {
    "s": st.sampled_from(["", "a", "Always", "x y"]),
    "i": st.integers(-1, 3),
    "b": st.booleans(),
    "n": st.floats(0, 1),
    "t": st.sampled_from(["2030-01-01T00:00:00Z"]),
    "m": st.sampled_from(["2030-01-01T00:00:00.000000Z"]),
    "q": st.sampled_from(["1", "100m", 2, "lots"]),
    "x": st.sampled_from([1, "50%"]),
    "y": st.just("YQ=="),
    "*": NOISE,
}


@st.composite
def value(draw: Any, code: str, depth: int) -> Any:
    if draw(st.integers(0, 19)) == 0:
        return draw(NOISE)
    if code in PLAIN:
        return draw(PLAIN[code])
    if code[0] == "[":
        return [draw(value(code[1:], depth)) for _ in range(draw(st.integers(0, 2)))]
    if code[0] == "{":
        return {
            key: draw(value(code[1:], depth)) for key in draw(st.sets(st.sampled_from(["a", "cpu", "B/"]), max_size=2))
        }
    described = field_table()[code]
    names = sorted(described["f"])
    chosen = set(described["r"]) | (draw(st.sets(st.sampled_from(names), max_size=3)) if names and depth else set())
    return {name: draw(value(described["f"][name], depth - 1)) for name in sorted(chosen) if depth > -4}


@st.composite
def body(draw: Any, rt: ResourceType) -> Any:
    fields = field_table()[type_name(rt)]["f"]
    obj = draw(value(type_name(rt), 3))
    if not isinstance(obj, dict):
        return obj
    for field in ("apiVersion", "kind", "metadata"):
        obj.pop(field, None)
    if "spec" in fields:
        obj["spec"] = draw(value(fields["spec"], 4))
    meta = draw(value("meta.v1.ObjectMeta", 2))
    return {**obj, "metadata": {**meta, "name": "x", "namespace": None} if isinstance(meta, dict) else meta}


@pytest.mark.parametrize("kind", sorted(TYPES))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_body_is_stored_or_refused(kind: str, data: st.DataObject) -> None:
    registry = Registry()
    bootstrap(registry)
    rt = TYPES[kind]
    namespace = "default" if rt.namespaced else None
    try:
        made = registry.create(rt, namespace, data.draw(body(rt)))
    except ApiError:
        return
    assert registry.get(rt, namespace, made["metadata"]["name"]) == made
    assert row(rt, made, datetime.now(UTC))
    patch = data.draw(body(rt))
    try:
        changed = registry.patch(rt, namespace, "x", patch, "application/merge-patch+json")
        assert row(rt, changed, datetime.now(UTC))
        registry.delete(rt, namespace, "x")
    except ApiError:
        return
