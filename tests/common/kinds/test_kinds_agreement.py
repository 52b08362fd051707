"""Pydantic and the CRD schema accept the same JSON, apart from what only an API server knows (CEL, list types, null)."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gryvia_common.kinds.catalogue import BY_NAME, KINDS
from gryvia_common.kinds.schema import structural
from gryvia_devcluster.schema import Structural

Json = dict[str, Any]
TIME = "2026-01-05T08:00:00Z"
WRONG = st.sampled_from(["", "text", 0, -1, 7, 2**31, 2**40, 1.5, True, False, [], ["a"], {}, {"a": "b"}, "1Gi", TIME])
PATTERNS = {
    "https": "https://example.com/a",
    "a-z0-9": "data-1",
    "A-Za-z0-9": "name_1",
    "numkMGTPE": "10Gi",
    "a-zA-Z0-9_-": "tool_1",
}


@cache
def plain(name: str, part: str) -> Json:
    """The schema of a spec or status without the rules that pydantic does not know."""
    kind = BY_NAME[name]
    schema = structural(kind.spec if part == "spec" else kind.status)
    _forget(schema)
    return schema


def _forget(node: Json) -> None:
    for key in ("x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"):
        node.pop(key, None)
    for part in node.get("properties", {}).values():
        _forget(part)
    for key in ("items", "additionalProperties"):
        if key in node:
            _forget(node[key])


@cache
def checker(name: str, part: str) -> Structural:
    return Structural({"type": "object", "properties": {part: plain(name, part)}, "required": [part]})


def values(node: Json) -> st.SearchStrategy[Any]:
    """Values that the node accepts."""
    if node.get("x-kubernetes-int-or-string"):
        return st.sampled_from([1, "500m", "2Gi"])
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if "type" not in node:
        return st.lists(st.sampled_from([1, "a", {"b": []}]), max_size=2) | st.just("{{parameters.list}}")
    if node.get("x-kubernetes-preserve-unknown-fields"):
        return st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), max_size=2)
    match node["type"]:
        case "object" if "additionalProperties" in node:
            return st.dictionaries(
                st.sampled_from(["a", "b-c", "d/e"]), values(node["additionalProperties"]), max_size=2
            )
        case "object":
            return objects(node)
        case "array":
            low = node.get("minItems", 0)
            return st.lists(values(node["items"]), min_size=low, max_size=max(low, 2))
        case "integer":
            bits = 31 if node.get("format") == "int32" else 63
            return st.integers(node.get("minimum", -(2**bits)), node.get("maximum", 2**bits - 1))
        case "number":
            low, high = node.get("minimum", -1e6), node.get("maximum", 1e6)
            return st.sampled_from([1, low, high]) | st.floats(low, high, allow_nan=False)
        case "boolean":
            return st.booleans()
        case "string" if node.get("format") == "date-time":
            return st.sampled_from([TIME, "2026-01-05T08:00:00.25+01:00"])
        case "string" if "pattern" in node:
            return st.just(next(text for mark, text in PATTERNS.items() if mark in node["pattern"]))
        case "string":
            return st.text("abc %{}", min_size=node.get("minLength", 0), max_size=8)
    raise AssertionError(node)


@st.composite
def objects(draw: st.DrawFn, node: Json) -> Json:
    """An object with what it must have and a few of its other fields: templates have too many for all of them."""
    properties = node.get("properties", {})
    required = set(node.get("required", ()))
    optional = [name for name in properties if name not in required]
    chosen = draw(st.lists(st.sampled_from(optional), max_size=3, unique=True)) if optional else []
    return {name: draw(values(part)) for name, part in properties.items() if name in required or name in chosen}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, part in items for place in places(part, (*path, key))]


def one_sided(path: tuple[Any, ...]) -> bool:
    """Where the two differ on purpose: withItems is a list or text, which no structural schema can say, so the service says
    it; a condition without a message is not written by us, yet read when somebody else wrote it."""
    return "withItems" in path or (path[0] == "conditions" and path[-1] == "message")


@cache
def damaged(name: str, part: str) -> st.SearchStrategy[Json]:
    """Values of the schema in which up to two places are wrong, missing or unknown."""

    @st.composite
    def draw_damaged(draw: st.DrawFn) -> Json:
        value: Json = copy.deepcopy(draw(values(plain(name, part))))
        for _ in range(draw(st.integers(0, 2))):
            if not (paths := [path for path in places(value) if not one_sided(path)]):
                break
            *parents, last = draw(st.sampled_from(paths))
            target: Any = value
            for key in parents:
                target = target[key]
            if isinstance(target, dict) and draw(st.booleans()):
                del target[last]
            else:
                target[last] = copy.deepcopy(draw(WRONG))
        return value

    return draw_damaged()


def pydantic_accepts(name: str, part: str, value: Json) -> bool:
    kind = BY_NAME[name]
    try:
        (kind.spec if part == "spec" else kind.status).model_validate(value)
    except ValidationError:
        return False
    return True


def schema_accepts(name: str, part: str, value: Json) -> bool:
    """An API server looks at the format of text only, so it lets a list pass for a time; pydantic does not."""
    if list_for_time(plain(name, part), value):
        return False
    obj = {"apiVersion": "gryvia.io/v1alpha1", "kind": name, "metadata": {"name": "x"}, part: copy.deepcopy(value)}
    schema = checker(name, part)
    schema.prune(obj)
    return schema.validate(obj, None) == []


def list_for_time(node: Json, value: Any) -> bool:
    if node.get("format") == "date-time":
        return isinstance(value, list)
    if isinstance(value, dict):
        inner = node.get("additionalProperties")
        parts = [(node.get("properties", {}).get(key, inner), part) for key, part in value.items()]
    else:
        parts = [(node.get("items"), part) for part in value] if isinstance(value, list) else []
    return any(list_for_time(schema, part) for schema, part in parts if schema)


PARTS = [
    (kind.name, part) for kind in KINDS for part in ("spec", "status") if part == "spec" or kind.status_subresource
]


@pytest.mark.parametrize(("name", "part"), PARTS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_pydantic_and_the_schema_accept_the_same(name: str, part: str, data: st.DataObject) -> None:
    value = data.draw(damaged(name, part))
    assert pydantic_accepts(name, part, value) == schema_accepts(name, part, value)


@pytest.mark.parametrize(("name", "part"), PARTS)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_a_service_writes_back_is_what_it_read(name: str, part: str, data: st.DataObject) -> None:
    """wire() of a parsed object keeps every value, is accepted, and is the same when parsed again."""
    value = data.draw(values(plain(name, part)))
    model = BY_NAME[name].spec if part == "spec" else BY_NAME[name].status
    written = model.model_validate(value).wire()
    assert schema_accepts(name, part, written)
    assert model.model_validate(written).wire() == written
    assert kept(value, written)


def kept(value: Any, written: Any) -> bool:
    """Whether everything in `value` stands in `written`, which may hold defaults besides."""
    if isinstance(value, dict):
        return all(key in written and kept(part, written[key]) for key, part in value.items())
    if isinstance(value, list):
        return len(value) == len(written) and all(map(kept, value, written))
    return bool(value == written)
