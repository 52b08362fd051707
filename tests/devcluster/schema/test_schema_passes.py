"""Pruning, defaulting, validation and rules, behaviour by behaviour."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest

from gryvia_devcluster.schema import Structural

VALIDATIONS = "x-kubernetes-validations"


def structural(spec: Any, **root: Any) -> Structural:
    return Structural({"type": "object", "properties": {"spec": spec}, **root})


def thing(spec: Any, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec, **more}


def obj(properties: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def lines(causes: Any) -> list[str]:
    return [f"{cause['field']}: {cause['message']}" for cause in causes]


def test_unknown_fields_are_pruned_and_named() -> None:
    schema = structural(
        obj(
            {
                "a": {"type": "string"},
                "list": {"type": "array", "items": obj({"b": {"type": "string"}})},
                "map": {"type": "object", "additionalProperties": obj({"c": {"type": "string"}})},
                "free": obj({"d": obj({})}, **{"x-kubernetes-preserve-unknown-fields": True}),
            }
        )
    )
    spec = {
        "a": "1",
        "z": 1,
        "list": [{"b": "1", "y": 2}],
        "map": {"k": {"c": "1", "x": 3}},
        "free": {"any": {"thing": 1}, "d": {"w": 1}},
    }
    value = thing(spec, top=1)
    assert schema.prune(value) == ["spec.free.d.w", "spec.list[0].y", "spec.map.k.x", "spec.z", "top"]
    assert value == thing(
        {"a": "1", "list": [{"b": "1"}], "map": {"k": {"c": "1"}}, "free": {"any": {"thing": 1}, "d": {}}}
    )


def test_object_metadata_is_known_at_the_root_and_in_embedded_resources() -> None:
    template = obj({"spec": obj({})}, **{"x-kubernetes-embedded-resource": True})
    inner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}, "zap": 1}, "spec": {}}
    value = thing({"template": inner})
    value["metadata"]["zap"] = 1
    assert structural(obj({"template": template})).prune(value) == ["metadata.zap", "spec.template.metadata.zap"]
    assert value["spec"]["template"]["metadata"] == {"name": "p", "labels": {"a": "b"}}


def test_defaults_need_their_parent() -> None:
    schema = structural(
        obj(
            {
                "n": {"type": "integer", "default": 3},
                "absent": obj({"x": {"type": "integer", "default": 1}}),
                "present": obj({"x": {"type": "integer", "default": 1}}, default={}),
                "items": {"type": "array", "items": obj({"x": {"type": "integer", "default": 1}})},
                "map": {"type": "object", "additionalProperties": obj({"x": {"type": "integer", "default": 1}})},
            }
        )
    )
    value = thing({"items": [{}, {"x": 2}], "map": {"k": {}}})
    schema.default(value)
    assert value["spec"] == {"n": 3, "present": {"x": 1}, "items": [{"x": 1}, {"x": 2}], "map": {"k": {"x": 1}}}
    empty = {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {"name": "x"}}
    schema.default(empty)
    assert "spec" not in empty


def test_nulls_are_dropped_defaulted_or_kept() -> None:
    schema = structural(
        obj(
            {
                "dropped": {"type": "string"},
                "defaulted": {"type": "string", "default": "d"},
                "kept": {"type": "string", "default": "d", "nullable": True},
            }
        )
    )
    value = thing({"dropped": None, "defaulted": None, "kept": None})
    schema.default(value)
    assert value["spec"] == {"defaulted": "d", "kept": None}


def test_a_default_is_never_shared_between_objects() -> None:
    schema = structural(obj({"list": {"type": "array", "items": {"type": "string"}, "default": ["a"]}}))
    first, second = thing({}), thing({})
    schema.default(first)
    first["spec"]["list"].append("b")
    schema.default(second)
    assert second["spec"]["list"] == ["a"]


@pytest.mark.parametrize(
    ("spec", "value", "wanted"),
    [
        ({"type": "string", "enum": ["grid", "random"]}, "x", 'Unsupported value: "x": supported values: "grid", "random"'),
        ({"type": "integer", "minimum": 1}, 0, "Invalid value: 0: spec.x in body should be greater than or equal to 1"),
        ({"type": "integer"}, "5", 'Invalid value: "string": spec.x in body must be of type integer: "string"'),
        ({"type": "string"}, None, 'Invalid value: "null": spec.x in body must be of type string: "null"'),
        ({"type": "string", "pattern": "^a$"}, "a\n", "Invalid value: \"a\\n\": spec.x in body should match '^a$'"),
        ({"type": "string", "maxLength": 1}, "ab", "Too long: may not be more than 1 byte"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 1}, ["a", "b"],
         "Too many: 2: must have at most 1 item"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, [],
         "Invalid value: 0: spec.x in body should have at least 1 items"),
        ({"type": "string", "format": "date-time"}, "now",
         'Invalid value: "now": spec.x in body must be of type date-time: "now"'),
        ({"x-kubernetes-int-or-string": True}, True,
         'Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"'),
    ],
)  # fmt: skip
def test_values_are_refused_in_the_real_servers_words(spec: Any, value: Any, wanted: str) -> None:
    causes = structural(obj({"x": spec})).validate(thing({"x": value}), None)
    assert lines(causes) == [f"spec.x: {wanted}"]


def test_required_fields_and_duplicates() -> None:
    schema = structural(
        obj(
            {
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "map": {
                    "type": "array",
                    "items": obj({"k": {"type": "string"}, "n": {"type": "integer"}}, required=["k"]),
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k", "n"],
                },
            },
            required=["must"],
        )
    )
    value = thing({"set": ["a", "b", "a", "a"], "map": [{"k": "a", "n": 1}, {"k": "a"}, {"k": "a", "n": 1}]})
    assert lines(schema.validate(value, None)) == [
        "spec.must: Required value",
        'spec.set[2]: Duplicate value: "a"',
        'spec.map[2]: Duplicate value: {"k":"a","n":1}',
    ]


def test_an_unchanged_invalid_field_does_not_block_an_update() -> None:
    schema = structural(obj({"a": {"type": "string", "enum": ["x"]}, "b": {"type": "integer", "minimum": 1}}))
    old = thing({"a": "old", "b": 1})
    assert schema.validate(thing({"a": "old", "b": 2}), old) == []
    assert len(schema.validate(thing({"a": "other", "b": 2}), old)) == 1
    mixed = structural(obj({"ios": {"x-kubernetes-int-or-string": True}}))
    assert len(mixed.validate(thing({"ios": True}), thing({"ios": 1}))) == 1
    lists = structural(obj({"set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}))
    assert lists.validate(thing({"set": ["a", "a", "b"]}), thing({"set": ["a", "a"]})) == []


def with_rules(*rules: Any, **properties: Any) -> Structural:
    return structural(
        obj({"a": {"type": "integer"}, "b": {"type": "integer"}, **properties}, **{VALIDATIONS: list(rules)})
    )


def test_a_rules_message_reason_and_field() -> None:
    schema = with_rules(
        {"rule": "self.a <= self.b", "messageExpression": "'a is ' + string(self.a)", "fieldPath": ".a"},
        {"rule": "self.a <= self.b", "message": "no", "reason": "FieldValueForbidden"},
        {"rule": "self.a <= self.b"},
        {"rule": "self.a <= self.b", "reason": "FieldValueRequired", "message": "give b", "fieldPath": ".b"},
        {"rule": "self.a <= self.b", "messageExpression": "string(1/0)", "message": "fallback"},
    )
    causes = schema.validate(thing({"a": 2, "b": 1}), None)
    assert lines(causes) == [
        "spec.a: Invalid value: a is 2",
        "spec: Forbidden: no",
        "spec: Invalid value: failed rule: self.a <= self.b",
        "spec.b: Required value: give b",
        "spec: Invalid value: fallback",
    ]


def test_transition_rules_wait_for_an_old_value_and_optional_ones_do_not() -> None:
    schema = with_rules(
        {"rule": "self.a == oldSelf.a", "message": "immutable"},
        {"rule": "oldSelf.hasValue() || self.a > 0", "optionalOldSelf": True, "message": "starts above 0"},
        {"rule": "oldSelf.optMap(o, self.b >= o.b).orValue(true)", "optionalOldSelf": True, "message": "only up"},
    )
    assert lines(schema.validate(thing({"a": 0, "b": 1}), None)) == ["spec: Invalid value: starts above 0"]
    old = thing({"a": 1, "b": 5})
    assert lines(schema.validate(thing({"a": 0, "b": 1}), old)) == [
        "spec: Invalid value: immutable",
        "spec: Invalid value: only up",
    ]


def test_items_of_a_keyed_list_are_compared_with_their_old_selves() -> None:
    item = obj(
        {"k": {"type": "string"}, "v": {"type": "integer"}},
        required=["k"],
        **{VALIDATIONS: [{"rule": "self.v >= oldSelf.v", "message": "only up"}]},
    )
    schema = structural(
        {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    )
    old = thing([{"k": "a", "v": 5}, {"k": "b", "v": 1}])
    new = thing([{"k": "b", "v": 2}, {"k": "c", "v": 0}, {"k": "a", "v": 4}])
    assert lines(schema.validate(new, old)) == ["spec[2]: Invalid value: only up"]


def test_rules_are_left_out_while_the_object_is_malformed() -> None:
    schema = with_rules({"rule": "self.a <= self.b"})
    assert lines(schema.validate(thing({"a": "x", "b": 1}), None))[1] == (
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation"
    )


def test_a_rule_without_a_value_is_an_error_not_a_pass() -> None:
    schema = with_rules({"rule": "self.b > 1"})
    assert lines(schema.validate(thing({"a": 1}), None)) == [
        'spec: Invalid value: "object": no such key: b evaluating rule: self.b > 1'
    ]


def test_rules_at_the_root_see_the_objects_name() -> None:
    schema = structural(obj({}), **{VALIDATIONS: [{"rule": "self.metadata.name.startsWith('a')", "message": "name"}]})
    assert lines(schema.validate(thing({}), None)) == ["<nil>: Invalid value: name"]


def test_validation_changes_nothing() -> None:
    schema = with_rules({"rule": "self.a <= self.b"}, f={"type": "number"})
    value = thing({"a": 1, "b": 2, "f": 1})
    before = copy.deepcopy(value)
    schema.validate(value, value)
    schema.validate(value, None)
    assert value == before


def test_the_engine_is_loaded_only_for_schemas_with_rules() -> None:
    code = (
        "import sys\n"
        "from gryvia_devcluster.schema import Structural\n"
        "plain = Structural({'type': 'object', 'properties': {'a': {'type': 'integer'}}})\n"
        "plain.validate({'a': 1}, None)\n"
        "sys.exit('cel_expr_python' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
