"""Label and field selectors match as the real server's do."""

from __future__ import annotations

import pytest

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store import FieldSelector, LabelSelector

LABELS = {"app": "web", "tier": "front", "example.com/level": "3"}
OBJ = {"metadata": {"name": "x", "namespace": "n", "labels": LABELS}, "spec": {"on": True, "node": "a"}, "status": {}}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=db", False),
        ("app!=db", True),
        ("none!=db", True),
        ("app in (web, db)", True),
        ("app in (db)", False),
        ("app notin (db,x)", True),
        ("none notin (db)", True),
        ("none in (db)", False),
        ("app", True),
        ("!app", False),
        ("! none", True),
        ("example.com/level>2", True),
        ("example.com/level<2", False),
        ("app=web,tier in (front,back),!none", True),
        ("app=web,tier in (back)", False),
        ("app=", False),
    ],
)
def test_label_selector(selector: str, matches: bool) -> None:
    assert LabelSelector(selector).matches(OBJ) is matches


@pytest.mark.parametrize("selector", ["a in b", "a in (b", "=x", "a b", "a=b=c"])
def test_a_label_selector_that_cannot_be_read_is_a_bad_request(selector: str) -> None:
    with pytest.raises(ApiError) as refused:
        LabelSelector(selector)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("metadata.name=x", True),
        ("metadata.name!=x", False),
        ("metadata.name=x,spec.node==a", True),
        ("spec.on=true", True),
        ("status.phase=", True),
        ("status.phase!=Running", True),
    ],
)
def test_field_selector(selector: str, matches: bool) -> None:
    assert FieldSelector(selector, lambda path: "").matches(OBJ) is matches


def test_a_field_that_is_not_selectable_is_named() -> None:
    with pytest.raises(ApiError, match=r"not spec\.secret"):
        FieldSelector("metadata.name=x,spec.secret=x", lambda path: "" if path == "metadata.name" else f"not {path}")
