"""Random schemas and objects, CEL rules and refused schemas, with the answers of Kubernetes 1.36.3's own libraries.

Left out is what is not modelled: cost estimates of rules, comprehensions of two variables, the fields of a
comprehension's variable.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from gryvia_devcluster.schema import Structural, check_structural

HERE = Path(__file__).parent
SCHEMAS = json.loads((HERE / "recorded_schemas.json").read_text())
RULES = json.loads((HERE / "recorded_rules.json").read_text())
CHECKS = json.loads((HERE / "recorded_crd_checks.json").read_text())
POSITIONS = json.loads((HERE / "recorded_positions.json").read_text())
STATUS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def thing(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}


def triples(causes: Any) -> list[list[str]]:
    return [[cause["reason"], cause["field"], cause["message"]] for cause in causes]


@pytest.mark.parametrize("case", SCHEMAS, ids=range(len(SCHEMAS)))
def test_prune_default_and_validate(case: Any) -> None:
    schema = {"type": "object", "properties": {"spec": case["schema"], "status": STATUS}}
    assert check_structural(schema) == case["refused"]
    if case["refused"]:
        return
    structural, obj = Structural(schema), thing(copy.deepcopy(case["spec"]))
    assert structural.prune(obj) == case["unknown"]
    structural.default(obj)
    assert obj == thing(case["result"])
    causes = triples(structural.validate(obj, None))
    assert sorted(causes, key=lambda cause: (cause[1], cause[2])) == case["causes"]


@pytest.mark.parametrize("case", RULES["rules"], ids=[case["rule"] for case in RULES["rules"]])
def test_a_rule(case: Any) -> None:
    rule = {"rule": case["rule"]} | ({"message": case["message"]} if case["message"] else {})
    spec = {**RULES["schema"], "x-kubernetes-validations": [rule]}
    schema = {"type": "object", "properties": {"spec": spec}}
    refused = check_structural(schema)
    assert bool(refused) == bool(case["refused"])
    if "Syntax error" not in "".join(refused):
        assert refused == case["refused"]
    if refused:
        return
    new, old = thing(RULES["spec"]), thing({**RULES["spec"], "n": 5})
    assert triples(Structural(schema).validate(new, None)) == case["create"]
    assert triples(Structural(schema).validate(new, old)) == case["update"]


@pytest.mark.parametrize("case", CHECKS, ids=range(len(CHECKS)))
def test_a_refused_or_accepted_schema(case: Any) -> None:
    assert check_structural(case["schema"]) == case["refused"]


@pytest.mark.parametrize("case", POSITIONS, ids=range(len(POSITIONS)))
def test_a_rule_on_a_value_of_any_type(case: Any) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": case["schema"]}}}}
    assert check_structural(schema) == case["refused"]
    if not case["refused"]:
        old = None if case["old"] is None else thing({"f": case["old"]})
        assert triples(Structural(schema).validate(thing({"f": case["new"]}), old)) == case["causes"]
