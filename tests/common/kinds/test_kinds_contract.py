"""Every field of the contract is there under its name, type, enum, default and bounds (contract.json holds its tables)."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gryvia_common.kinds.catalogue import BY_NAME, BY_PLURAL, KINDS
from gryvia_common.kinds.crd import crd
from gryvia_common.kinds.schema import annotated

CONTRACT = json.loads((Path(__file__).parent / "contract.json").read_text())
FIELDS = [(kind, part, field) for kind in CONTRACT for part in ("spec", "status") for field in kind[part]]

OPEN_SETS = {
    # A manifest with another value worked before, or the contract answers it with phase Failed instead of a refusal.
    ("GryviaAIJob", "gpuType"),
    ("GryviaAutoTuner", "objective.direction"),
    ("GryviaModelRegistry", "artifacts.format"),
    ("GryviaInferenceService", "backend"),
}
FRAGMENTS = {
    "EnvVar": "name",
    "Volume": "emptyDir",
    "VolumeMount": "mountPath",
    "Toleration": "effect",
    "ResourceRequirements": "limits",
    "GryviaAIJobSpec": "distributed",
    "GryviaWorkflowSpec": "steps",
    "ModelArtifacts": "s3Path",
    "ServingConfig": "canaryWeight",
    "PromotionPolicy": "minDelta",
    "RollbackPolicy": "threshold",
    "Condition": "lastTransitionTime",
    "trial object": "metricValue",
}
SIMPLE = {
    "string": ("string", None),
    "duration": ("string", None),
    "int32": ("integer", "int32"),
    "int64": ("integer", "int64"),
    "int": ("integer", None),
    "integer": ("integer", None),
    "number": ("number", None),
    "bool": ("boolean", None),
    "time": ("string", "date-time"),
}


def ident(case: Any) -> str:
    kind, part, field = case
    return f"{kind['name']}.{part}.{field['path']}"


@cache
def whole(kind: str, part: str) -> dict[str, Any]:
    return annotated(BY_NAME[kind].spec if part == "spec" else BY_NAME[kind].status)


def find(kind: str, part: str, path: str) -> tuple[dict[str, Any], bool]:
    """The schema node of a contract path, and whether its parent requires it. `a[]` alone names the list."""
    node, required = whole(kind, part), False
    for name in path.removesuffix("[]").split("."):
        required = name.removesuffix("[]") in node.get("required", ())
        node = node["properties"][name.removesuffix("[]")]
        if name.endswith("[]"):
            node = node["items"]
    return node, required


def has_type(node: dict[str, Any], type: str) -> bool:
    if type.startswith("[]"):
        return node.get("type") == "array" and has_type(node["items"], type[2:])
    if type.startswith("map[string]"):
        return has_type(node["additionalProperties"], type.removeprefix("map[string]"))
    if type == "list":
        return node.get("type") == "array"
    if type == "object":
        return node.get("type") in ("object", "array")
    if type == "Affinity":
        return node.get("x-kubernetes-preserve-unknown-fields") is True
    if type in FRAGMENTS:
        return FRAGMENTS[type] in node["properties"]
    if type == "string" and node.get("x-kubernetes-int-or-string"):
        return True  # a quantity: text, or a number that YAML reads as one
    return (node.get("type"), node.get("format")) == SIMPLE[type]


@pytest.mark.parametrize("case", FIELDS, ids=ident)
def test_a_field_has_the_type_of_the_contract_and_is_required_where_it_says_so(case: Any) -> None:
    kind, part, field = case
    node, required = find(kind["name"], part, field["path"])
    assert has_type(node, field["type"]), node
    assert required == field.get("required", False)


@pytest.mark.parametrize("case", [case for case in FIELDS if {"enum", "set"} & case[2].keys()], ids=ident)
def test_a_fixed_set_of_values_is_an_enum_that_refuses_none_of_them(case: Any) -> None:
    kind, part, field = case
    node, _ = find(kind["name"], part, field["path"])
    node = node.get("items", node) if field["type"].startswith("[]") else node
    if (kind["name"], field["path"]) in OPEN_SETS:
        assert "enum" not in node
    else:
        assert set(field.get("enum") or field["set"]) <= set(node["enum"])


@pytest.mark.parametrize("case", [case for case in FIELDS if {"bounds", "pattern"} & case[2].keys()], ids=ident)
def test_a_bold_bound_is_in_the_schema(case: Any) -> None:
    kind, part, field = case
    node, _ = find(kind["name"], part, field["path"])
    if pattern := field.get("pattern"):
        if pattern.startswith("DNS label"):
            assert re.search(node["pattern"], "data-1")
            assert not re.search(node["pattern"], "Data_1")
            assert node["maxLength"] == 63
        else:
            assert node["pattern"] == pattern
        return
    for bound in field["bounds"]:
        if ".." in bound:
            low, high = bound.split("..")
            assert (node["minimum"], node["maximum"]) == (int(low), int(high))
        else:
            keyword, value = bound.split(" ")
            assert node[{"min": "minimum", "max": "maximum"}.get(keyword, keyword)] == int(value)


@pytest.mark.parametrize("case", [case for case in FIELDS if "storedDefault" in case[2]], ids=ident)
def test_a_bold_default_is_stored_by_the_api_server(case: Any) -> None:
    kind, part, field = case
    node, _ = find(kind["name"], part, field["path"])
    assert str(node["default"]) == field["storedDefault"]
    assert node["x-gryvia-default"] is True


def plain_default(text: str) -> str | None:
    """The value a contract cell states ("0 = off", "100Gi"), None where it is a rule in words."""
    value = text.split(" = ")[0].strip('"')
    return value if re.fullmatch(r"false|true|[0-9.]+[A-Za-z]*|[a-z-]+", value) else None


WORDS = {"2xx", "empty", "none", "any", "flag", "built-in"}
DEFAULTS = [case for case in FIELDS if plain_default(case[2].get("default", "")) and case[2]["default"] not in WORDS]


@pytest.mark.parametrize("case", DEFAULTS, ids=ident)
def test_a_plain_default_is_the_models_own_and_not_stored(case: Any) -> None:
    kind, part, field = case
    node, _ = find(kind["name"], part, field["path"])
    default = node["default"]
    text = str(default).lower() if isinstance(default, bool) else str(default)
    assert text == plain_default(field["default"])
    assert "x-gryvia-default" not in node


@pytest.mark.parametrize("kind", CONTRACT, ids=lambda kind: kind["name"])
def test_names_scope_columns_and_status_are_those_of_the_contract(kind: dict[str, Any]) -> None:
    spec = crd(BY_NAME[kind["name"]])["spec"]
    version = spec["versions"][0]
    assert spec["names"]["plural"] == kind["plural"]
    assert spec["names"].get("shortNames", []) == kind["shortNames"]
    assert spec["names"]["categories"] == ["gryvia"]
    assert spec["scope"] == ("Namespaced" if kind["namespaced"] else "Cluster")
    assert [[c["name"], c["jsonPath"], c["type"]] for c in version.get("additionalPrinterColumns", [])] == kind[
        "columns"
    ]
    assert ("status" in version.get("subresources", {})) == kind["statusSubresource"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)


def test_the_catalogue_has_each_kind_once_by_name_and_by_plural() -> None:
    assert [kind.name for kind in KINDS] == [kind["name"] for kind in CONTRACT]
    assert {kind.plural: kind for kind in KINDS} == BY_PLURAL


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.status_subresource], ids=lambda kind: kind.name)
def test_every_status_has_the_observed_generation_and_conditions_by_type(kind: Any) -> None:
    node = annotated(kind.status)["properties"]
    assert node["observedGeneration"]["format"] == "int64"
    assert node["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert node["conditions"]["items"]["required"] == ["lastTransitionTime", "message", "reason", "status", "type"]
