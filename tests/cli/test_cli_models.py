"""`gryvia models`: the ladder to production, and what was in production when."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from gryvia_cli.model_text import parse_moment
from gryvia_common.errors import Terminal
from gryvia_common.kinds.families import Family, Holder, Term, record_data, record_manifest

ENTRY = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaModelRegistry
metadata: {{name: {name}}}
spec:
  modelName: {model}
  version: "{version}"
  stage: {stage}
  artifacts: {{pvcName: models, subPath: "{version}", format: other}}
  metadata: {{val_accuracy: "0.97"}}
  {more}
"""
GATED = "promotionPolicy: {metric: val_accuracy, requireApproval: true}"


@pytest.fixture
def put(bench: Any, request: pytest.FixtureRequest) -> Any:
    """Makes an entry of a family of the test's own; its name. `put.family` is the family."""
    family = f"fam-{abs(hash(request.node.nodeid)) % 10**9}"

    def make(stage: str = "dev", version: str = "1", more: str = "", **status: Any) -> str:
        name = f"{family}-v{version}"
        bench.put(ENTRY.format(name=name, model=family, stage=stage, version=version, more=more), status or None)
        return name

    make.family = family  # type: ignore[attr-defined]
    return make


def stage(bench: Any, name: str) -> str:
    return str(bench.get("GryviaModelRegistry", name)["spec"]["stage"])


def test_an_entry_goes_up_the_ladder_one_stage_at_a_time(bench: Any, put: Any) -> None:
    name = put("dev")
    said = bench.gryvia("models", "promote", name, "--yes", code=1)
    assert f"model {name} is in stage dev and cannot go to production: the ladder is dev -> staging" in said
    assert f"the next step is `gryvia models promote {name} --to staging`" in said
    for target in ("staging", "production", "archived"):
        assert bench.gryvia("models", "promote", name, "--to", target, "--yes") == f"model {name}: stage {target}\n"
        assert stage(bench, name) == target
    assert "is in stage archived already" in bench.gryvia(
        "models", "promote", name, "--to", "archived", "--yes", code=1
    )
    assert "which is the end of the ladder" in bench.gryvia("models", "promote", name, "--yes", code=1)


def test_an_entry_without_a_stage_is_in_dev(bench: Any, put: Any) -> None:
    name = put("dev")
    bench.patch("GryviaModelRegistry", name, {"spec": {"stage": None}})
    bench.gryvia("models", "promote", name, "--to", "staging", "--yes")
    assert stage(bench, name) == "staging"


def test_promote_asks_and_takes_no_for_an_answer(bench: Any, put: Any) -> None:
    name = put("staging")
    said = bench.gryvia("models", "promote", name, code=1, input="n\n")
    assert f"Promote {name} to production? [y/N]" in said
    assert stage(bench, name) == "staging"


def test_wait_tells_what_the_registry_says(bench: Any, put: Any) -> None:
    condition = {
        "type": "InProduction",
        "status": "True",
        "reason": "ByHand",
        "message": "since now",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    name = put("staging", observedGeneration=2, conditions=[condition])
    assert (
        bench.gryvia("models", "promote", name, "--yes", "--wait").splitlines()[-1]
        == f"model {name}: in production since now"
    )


def test_list_and_get(bench: Any, put: Any) -> None:
    first, second = put("production", "1", previousVersion="0", aliases=["champion"]), put("staging", "2")
    rows = [line.split() for line in bench.gryvia("models", "list", "--model", put.family).splitlines()]
    assert rows[0] == ["NAME", "MODEL", "VERSION", "STAGE", "PHASE", "ALIASES", "GATE", "AGE", "MESSAGE"]
    assert rows[1][:5] == [first, put.family, "1", "production", "champion"]
    assert rows[2][:4] == [second, put.family, "2", "staging"]
    assert [one["metadata"]["name"] for one in bench.json("models", "list", "-m", put.family)] == [first, second]
    assert first in bench.gryvia("list", "models")
    facts = bench.gryvia("models", "get", first)
    for words in ("pvc://models/1 (other)", f"{put.family} version 1", "champion", "metadata val_accuracy", "0.97"):
        assert words in facts
    assert bench.json("models", "get", second)["spec"]["stage"] == "staging"


def test_rollback_asks_the_registry(bench: Any, put: Any) -> None:
    name = put("production", "2", previousVersion="1")
    assert "rollback to 1 asked for" in bench.gryvia("models", "rollback", name, "--yes")
    annotations = bench.get("GryviaModelRegistry", name)["metadata"]["annotations"]
    assert annotations["gryvia.io/rollback-requested"].startswith("cli at 20")


def test_what_cannot_be_rolled_back_says_why(bench: Any, put: Any) -> None:
    first, second = put("staging", "1"), put("production", "2")
    assert "is in stage staging; only what is in production" in bench.gryvia("models", "rollback", first, "-y", code=1)
    said = bench.gryvia("models", "rollback", second, "-y", code=1)
    assert f"has nothing before it to go back to (`gryvia models history {put.family}`)" in said


def test_approval_of_a_promotion(bench: Any, put: Any) -> None:
    name = put("staging", "1", GATED)
    assert bench.gryvia("models", "reject", name, "--comment", "too slow") == f"model {name}: Rejected by admin\n"
    assert bench.gryvia("models", "approve", name) == f"model {name}: Approved by admin\n"
    annotations = bench.get("GryviaModelRegistry", name)["metadata"]["annotations"]
    assert json.loads(annotations["gryvia.io/approval"]) == {"decision": "Approved", "by": "admin"}
    assert "was Approved by admin already" in bench.gryvia("models", "approve", name, code=1)
    said = bench.gryvia("models", "reject", name, "--comment", "x" * 501, code=1)
    assert "--comment has 501 characters, at most 500" in said


@pytest.mark.parametrize(
    ("stage", "more", "sentence"),
    [
        (
            "staging",
            "",
            "asks for no approval (promotionPolicy.requireApproval); promote it by hand: `gryvia models promote",
        ),
        ("dev", GATED, "is in stage dev; it waits for approval in staging only"),
    ],
)
def test_what_asks_for_no_approval_is_not_approved(bench: Any, put: Any, stage: str, more: str, sentence: str) -> None:
    assert sentence in bench.gryvia("models", "approve", put(stage, "1", more), code=1)


def term(entry: str, number: int, start: str, end: str | None = None, **more: Any) -> Term:
    return Term(
        entry=entry,
        uid=entry,
        version=entry[-1],
        number=number,
        generation=1,
        stage="staging",
        start=start,
        end=end,
        cause=more.pop("cause", "Promoted"),
        **more,
    )


@pytest.fixture
def record(bench: Any, put: Any) -> str:
    """v1 from 10 to 11, v2 from 11 to 13, nothing until 15, v3 since; the family."""
    family: str = put.family
    terms = (
        term("e3", 5, "2026-01-01T15:00:00Z", cause="ByHand"),
        term("e2", 3, "2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z", reason="Released"),
        term(
            "e1",
            1,
            "2026-01-01T10:00:00Z",
            "2026-01-01T11:00:00Z",
            reason="Replaced",
            successor="e2",
            note="0.97 [first]",
        ),
    )
    manifest = record_manifest(family, "default")
    manifest["data"] = record_data(Family(name=family, change=6, production=Holder(entry="e3", uid="e3"), terms=terms))
    bench.put(json.dumps(manifest))
    return family


def test_history_is_newest_first_with_its_reasons(bench: Any, record: str) -> None:
    lines = bench.gryvia("models", "history", record).splitlines()
    assert lines[0].split() == ["ENTRY", "VERSION", "FROM", "TO", "FOR", "BY", "ENDED", "NOTE"]
    assert [line.split()[0] for line in lines[1:]] == ["e3", "e2", "e1"]
    assert " now " in lines[1]
    assert lines[3].split()[-7:] == ["1h", "policy", "Replaced", "by", "e2", "0.97", "[first]"]
    wire = bench.json("models", "history", record)
    assert [(one["entry"], one["startTime"], one["endTime"]) for one in wire] == [
        ("e3", "2026-01-01T15:00:00Z", None),
        ("e2", "2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z"),
        ("e1", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"),
    ]


@pytest.mark.parametrize(
    ("moment", "entry"),
    [
        ("2026-01-01T09:59:59Z", None),
        ("2026-01-01T10:00:00Z", "e1"),
        ("2026-01-01T11:00:00Z", "e2"),
        ("2026-01-01T12:30:00+00:30", "e2"),
        ("2026-01-01T14:00:00Z", None),
        ("2026-02-01", "e3"),
    ],
)
def test_what_was_in_production_then(bench: Any, record: str, moment: str, entry: str | None) -> None:
    said = bench.gryvia("models", "history", record, "--at", moment, code=0 if entry else 1)
    expected = f"{entry} (version {entry[-1]}) was in production at" if entry else "was in production at"
    assert expected in said
    assert ("nothing of model" in said) is (entry is None)
    answer = bench.json("models", "history", record, "--at", moment, code=0 if entry else 1)
    assert (answer or {}).get("entry") == entry


def test_a_family_is_found_by_its_entry_too(bench: Any, put: Any, record: str) -> None:
    assert "e3" in bench.gryvia("models", "history", put("staging", "7"))


def test_a_family_without_history_and_one_that_is_none(bench: Any, put: Any) -> None:
    put("staging")
    assert (
        bench.gryvia("models", "history", put.family) == f"Nothing of model {put.family} has been in production yet.\n"
    )
    said = bench.gryvia("models", "history", "nowhere", code=1)
    assert said.startswith("gryvia: no model nowhere in namespace default; there are ")
    assert put.family in said


def test_a_record_that_was_edited_by_hand_is_not_believed(bench: Any, put: Any) -> None:
    manifest = record_manifest(put.family, "default")
    manifest["data"] = {"family.json": json.dumps({"name": put.family, "production": {"entry": "e", "uid": "u"}})}
    bench.put(json.dumps(manifest))
    said = bench.gryvia("models", "history", put.family, code=1)
    assert f"the record of model {put.family} (ConfigMap gryvia-family-{put.family}) cannot be believed" in said


def test_moments_are_of_this_machines_zone_unless_they_say_another() -> None:
    now = datetime(2026, 11, 29, tzinfo=UTC)
    berlin = timezone(timedelta(hours=1))
    assert parse_moment("2026-11-24 12:00", now, berlin) == datetime(2026, 11, 24, 11, tzinfo=UTC)
    assert parse_moment("2026-11-24T12:00:00Z", now, berlin) == datetime(2026, 11, 24, 12, tzinfo=UTC)
    assert parse_moment("2026-11-24", now, berlin) == datetime(2026, 11, 23, 23, tzinfo=UTC)
    with pytest.raises(Terminal, match="lies ahead"):
        parse_moment("2026-12-24", now, berlin)
    with pytest.raises(Terminal, match="write a date"):
        parse_moment("last tuesday", now, berlin)
