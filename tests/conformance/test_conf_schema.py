"""What a CRD's schema does to an object: defaults, pruning, refusals and their words, rules in CEL, strict fields."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tools.realcluster.http import MERGE

from .widgets import CRDS_PATH, PODS_PATH, WIDGETS_PATH, crd, establish, widget

WRONG: list[Any] = [
    {"size": 0},
    {"size": 101},
    {"size": "1"},
    {"size": 1.5},
    {"size": 1.0},
    {"size": 10**20},
    {"color": "pink"},
    {"color": ""},
    {"color": None},
    {"replicas": 2**31},
    {"name": "UPPER"},
    {"name": "toolongname"},
    {"name": 5},
    {"ratio": 0},
    {"ratio": 0.5},
    {"ratio": "0.5"},
    {"ratio": 3},
    {"when": "yesterday"},
    {"when": "2026-01-05T08:00:00Z"},
    {"when": "2026-01-05"},
    {"amount": 1},
    {"amount": "500m"},
    {"amount": 1.5},
    {"amount": True},
    {"tags": ["a", "a"]},
    {"tags": ["a", "b", "c", "d", "e"]},
    {"tags": "a"},
    {"tags": [1]},
    {"tags": [None]},
    {"tags": None},
    {"list": [1, "x", 3.5]},
    {"ports": [{"name": "a"}, {"name": "a"}]},
    {"ports": [{"number": 1}]},
    {"ports": [{"name": "a", "extra": 1}]},
    {"ports": {}},
    {"free": {"any": {"thing": [1, {"x": None}]}}},
    {"free": []},
    {"labels": {"a": 1}},
    {"labels": {"a": None}},
    {"labels": []},
    {"frame": {"width": 3, "unknown": 4}},
    {"frame": None},
    {"frame": {"wood": None}},
    {"maybe": None},
    {"maybe": "x"},
    {"low": 5, "high": 3},
    {"low": 3, "high": 5},
    {"low": 5, "high": "x"},
    {"unknown": 1, "alsoUnknown": {"a": 1}},
    {"size": 0, "color": "pink", "name": "UPPER", "tags": [1]},
]


async def test_a_value_is_stored_or_refused(talk: Any) -> None:
    for number, spec in enumerate(WRONG):
        await talk("POST", WIDGETS_PATH, {**widget(f"w{number}"), "spec": {"size": 1, **spec}})
    await talk("POST", WIDGETS_PATH, {**widget(), "spec": {}})
    await talk("POST", WIDGETS_PATH, {**widget(), "spec": []})
    await talk("POST", WIDGETS_PATH, {"metadata": {"name": "none"}, "apiVersion": "example.com/v1", "kind": "Widget"})
    await talk("POST", WIDGETS_PATH, {**widget("top"), "data": 1})


@pytest.mark.parametrize("mode", ["Strict", "Warn", "Ignore", "", "Loose"])
async def test_unknown_fields(talk: Any, mode: str) -> None:
    query = f"?fieldValidation={mode}" if mode else ""
    await talk("POST", f"{WIDGETS_PATH}{query}", widget(one=1, frame={"two": 2}, free={"fine": 1}))
    await talk(
        "POST",
        f"{WIDGETS_PATH}{query}",
        b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"d"},"spec":{"size":1,"size":2}}',
    )
    spec = {"containers": [{"name": "c", "image": "i", "imge": "j"}], "foo": 1, "automountServiceAccountToken": False}
    pod = {"metadata": {"name": "p"}, "spec": spec}
    await talk("POST", f"{PODS_PATH}{query}{'&' if query else '?'}dryRun=All", pod)
    await talk("PATCH", f"{WIDGETS_PATH}/a{query}", {"spec": {"size": 2, "three": 3}}, content_type=MERGE)


async def test_rules_see_the_old_object(talk: Any) -> None:
    await talk("POST", WIDGETS_PATH, widget(fixed="a"))
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"spec": {"fixed": "b"}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"spec": {"fixed": None}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"spec": {"fixed": "c"}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"spec": {"low": 9, "high": 1}}, content_type=MERGE)


RULES = [
    ("self.size > 3", {"size": 3}),
    ("self.size > 3", {"size": 4}),
    ("self.items.all(i, i.startsWith('a'))", {"items": ["ab", "b"]}),
    ("self.items.exists_one(i, i == 'a')", {"items": ["a", "a"]}),
    ("self.items.map(i, size(i)).sum() < 4", {"items": ["abc", "d"]}),
    ("self.items.isSorted()", {"items": ["b", "a"]}),
    ("self.name.matches('^[a-z]+$')", {"name": "A1"}),
    ("self.name.split('-').size() == 2", {"name": "a-b-c"}),
    ("has(self.name) ? self.name != 'x' : true", {}),
    ("self.name == 'x' || self.size == 1", {"size": 1}),
    ("self.size / self.zero == 1", {"size": 1, "zero": 0}),
    ("quantity(self.name).isLessThan(quantity('1Gi'))", {"name": "2Gi"}),
    ("isQuantity(self.name)", {"name": "many"}),
    ("duration(self.name) < duration('1h')", {"name": "90m"}),
    ("timestamp(self.name) > timestamp('2026-01-01T00:00:00Z')", {"name": "2025-01-01T00:00:00Z"}),
    ("url(self.name).getHost() == 'example.com'", {"name": "https://other.org/x"}),
    ("self.labels.exists(k, k == 'a' && self.labels[k] == 'b')", {"labels": {"a": "c"}}),
    ("self.?name.orValue('none') == 'none'", {"name": "x"}),
    ("ip(self.name).family() == 4", {"name": "::1"}),
    ("self.items.indexOf('b') == 1", {"items": ["b"]}),
    ("self.name.lowerAscii() == self.name", {"name": "Ab"}),
    ("self.items.filter(i, i != 'a').size() == 0", {"items": ["a", "b"]}),
    ("sets.contains(self.items, ['a'])", {"items": ["b"]}),
]


async def test_rules(talk: Any, api: Any) -> None:
    """Each rule as a CRD of its own would take a second each on a real server, so: one CRD, a field for each rule."""
    inner = {
        "size": {"type": "integer"},
        "zero": {"type": "integer"},
        "name": {"type": "string", "maxLength": 64},
        "items": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 20}},
        "labels": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 9}},
    }
    fields = {
        f"r{number}": {"type": "object", "properties": inner, "x-kubernetes-validations": [{"rule": rule}]}
        for number, (rule, _) in enumerate(RULES)
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    await establish(api, crd("ruled", "Ruled", schema={"openAPIV3Schema": schema}))
    for number, (rule, value) in enumerate(RULES):
        body = {
            "apiVersion": "example.com/v1",
            "kind": "Ruled",
            "metadata": {"name": f"r{number}"},
            "spec": {f"r{number}": value},
        }
        answer = await talk("POST", "/apis/example.com/v1/namespaces/{ns}/ruled", body)
        assert answer.code in (201, 422), rule


STRING: Any = {"type": "string"}


def ruled(rule: str, type: str = "string", **bounds: Any) -> Any:
    return {"type": type, **bounds, "x-kubernetes-validations": [{"rule": rule}]}


KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
FIELDS: list[tuple[str, Any]] = [
    ("field without type", {"minimum": 1}),
    ("array without items", {"type": "array"}),
    ("default of the wrong type", {"type": "integer", "default": "x"}),
    ("unique items", {"type": "array", "uniqueItems": True, "items": STRING}),
    ("ref", {"$ref": "#/x"}),
    ("map key that is no field", {"type": "array", **KEYED, "items": {"type": "object", "properties": {}}}),
    ("rule that is no CEL", ruled("self +")),
    ("rule of the wrong type", ruled("self > 1", maxLength=5)),
    ("rule of an unknown field", ruled("self.b == 1", "object")),
    ("both additional and properties", {"type": "object", "properties": {"b": STRING}, "additionalProperties": STRING}),
]
STRUCTURAL: list[tuple[str, Any]] = [
    ("no type", {"properties": {"a": STRING}}),
    ("not an object", STRING),
    (
        "metadata restricted",
        {
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}},
        },
    ),
    *((name, {"type": "object", "properties": {"a": field}}) for name, field in FIELDS),
]


async def test_definitions_that_are_refused(talk: Any) -> None:
    for number, (_, schema) in enumerate(STRUCTURAL):
        await talk(
            "POST", f"{CRDS_PATH}?dryRun=All", crd(f"bad{number}s", f"Bad{number}", schema={"openAPIV3Schema": schema})
        )
    wrong_name = crd("things", "Thing")
    wrong_name["metadata"]["name"] = "other.example.com"
    await talk("POST", f"{CRDS_PATH}?dryRun=All", wrong_name)
    two_stored = crd("twos", "Two")
    two_stored["spec"]["versions"] *= 2
    await talk("POST", f"{CRDS_PATH}?dryRun=All", two_stored)
    for key, value in (("scope", "Global"), ("group", ""), ("versions", []), ("names", {})):
        definition = crd("lessers", "Lesser")
        definition["spec"][key] = value
        await talk("POST", f"{CRDS_PATH}?dryRun=All", definition)


async def test_ratcheting_lets_an_old_mistake_stay(talk: Any, api: Any) -> None:
    """A value that was there before the rule may stay as long as nobody touches it (KEP-4008)."""
    definition = crd("ratchets", "Ratchet", schema={"openAPIV3Schema": _ratchet({})})
    stored = await establish(api, definition)
    path = "/apis/example.com/v1/namespaces/{ns}/ratchets"
    head = {"apiVersion": "example.com/v1", "kind": "Ratchet", "metadata": {"name": "r"}}
    await talk("POST", path, {**head, "spec": {"a": "long", "b": "x"}})
    versions = [{**stored["spec"]["versions"][0], "schema": {"openAPIV3Schema": _ratchet({"maxLength": 2})}}]
    await api.ok("PATCH", f"{CRDS_PATH}/ratchets.example.com", {"spec": {"versions": versions}}, content_type=MERGE)
    for attempt in itertools.count():
        answer = await api(
            "POST",
            path.replace("{ns}", talk.namespace) + "?dryRun=All",
            {**head, "metadata": {"name": "q"}, "spec": {"a": "long"}},
        )
        if answer.code == 422:
            break
        assert attempt < 5000
    await talk("PATCH", f"{path}/r", {"spec": {"b": "y"}}, content_type=MERGE)
    await talk("PATCH", f"{path}/r", {"spec": {"a": "other"}}, content_type=MERGE)
    await talk("PATCH", f"{path}/r", {"spec": {"a": "ok"}}, content_type=MERGE)


def _ratchet(bound: Any) -> Any:
    fields = {"a": {"type": "string", **bound}, "b": {"type": "string"}}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
