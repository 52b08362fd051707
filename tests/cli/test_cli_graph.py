"""A workflow's graph in the terminal: the lines say what waits for what, and fit."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from gryvia_cli.__main__ import app
from gryvia_cli.pipeline import StepView, ordered, step_views
from gryvia_cli.rails import MARK, Row, rail_rows
from gryvia_cli.workflow_graph import dot, drawn, mermaid

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
PIPELINE = {
    "prepare": "",
    "train": "prepare",
    "evaluate": "train",
    "benchmark": "train",
    "register": "evaluate benchmark",
}


def views(graph: dict[str, str], states: list[dict[str, Any]] | None = None, **last: str) -> list[StepView]:
    steps = [{"name": name, "script": {}, "dependsOn": after.split()} for name, after in graph.items()]
    steps += [{"name": name, "script": {}, "finally": True, "dependsOn": after.split()} for name, after in last.items()]
    return step_views({"steps": steps}, states or [])


def lines(steps: list[StepView], width: int = 80) -> list[str]:
    return [line.plain for line in drawn(steps, NOW, width)]


def test_a_pipeline_as_a_person_sees_it() -> None:
    states = [
        {
            "name": "prepare",
            "phase": "Succeeded",
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:00:12Z",
        },
        {"name": "train", "phase": "Running", "startTime": "2026-01-01T00:03:50Z"},
        {
            "name": "evaluate",
            "phase": "Running",
            "items": [{"phase": "Succeeded"}, {"phase": "Failed"}, {"phase": "Running"}],
        },
    ]
    assert lines(views(PIPELINE, states, report="")) == [
        "✓   prepare    Succeeded  12s",
        "│",
        "●   train      Running  1m10s      ← prepare",
        "├─● evaluate   Running  2/3 items  ← train",
        "○ │ benchmark  script              ← train",
        "│ │",
        "○─╯ register   script              ← evaluate, benchmark",
        "",
        "in the end, whatever happened",
        "○ report  script",
    ]


def test_steps_side_by_side_share_a_rail() -> None:
    wide = {"start": "", **{f"work-{number}": "start" for number in range(60)}}
    wide["join"] = " ".join(name for name in wide if name != "start")
    found = lines(views(wide))
    assert max(line.index(next(c for c in line if c in "○✓")) for line in found if "○" in line) <= 2
    assert max(map(len, found)) <= 80


def test_what_waits_in_a_circle_or_for_nobody_is_said() -> None:
    found = lines(views({"a": "b", "b": "a", "behind": "a", "good": "", "lost": "nowhere"}))
    circle = found.index("in a circle, or behind one: these can never start")
    assert [line.split()[1] for line in found[circle + 1 :]] == ["a", "b", "behind"]
    assert next(line for line in found if "lost" in line).endswith("← nowhere (no such step)")


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, str]:
    size = draw(st.integers(1, 100))
    found: dict[str, str] = {}
    for number in range(size):
        names = list(found)[-draw(st.sampled_from([2, 10, 100])) :]
        after = draw(st.lists(st.sampled_from(names), max_size=4, unique=True)) if names else []
        found[f"step-{number}"] = " ".join(after)
    return found


def followed(rows: list[Row]) -> set[tuple[str, str]]:
    """The edges that the lines say, read like a person: sideways from a mark to the rails it is joined to, and up where a line is
    right above it. Marks right below each other are on one rail."""
    edges: set[tuple[str, str]] = set()
    rails: dict[int, list[str]] = {}
    before = ""
    for row in rows:
        text = row.lines
        if row.step is not None:
            place, name = text.index(MARK), row.step.name
            sources = rails.pop(place, []) if before[place : place + 1] in tuple("│├┤┼") else []
            low = text.rfind(" ", 0, place) + 1
            high = text.find(" ", place) % (len(text) + 1)
            for at in range(low, high):
                if text[at] in "├┤┼╰╯┴":
                    assert before[at] in "│├┤┼" + MARK, "a rail that begins nowhere"
                    sources += rails[at] if text[at] in "├┤┼" else rails.pop(at)
            edges |= {(source, name) for source in sources}
            rails[place] = [*(rails[place] if before[place : place + 1] == MARK else []), name]
        before = text
    return edges


@settings(max_examples=40)
@given(graphs())
def test_the_lines_say_what_waits_for_what_and_nothing_else(graph: dict[str, str]) -> None:
    steps, _ = ordered(views(graph))
    assert followed(rail_rows(steps)) == {(before, name) for name, after in graph.items() for before in after.split()}


@settings(max_examples=40)
@given(graphs())
def test_every_graph_fits_eighty_columns_with_each_step_once_below_what_it_waits_for(graph: dict[str, str]) -> None:
    steps = views(graph)
    found = lines(steps)
    assert max(map(len, found)) <= 80
    names = [match[0] for line in found if (match := re.search(r"step-\d+", line.partition("←")[0]))]
    assert sorted(names) == sorted(graph)
    assert all(names.index(before) < names.index(name) for name, after in graph.items() for before in after.split())


def test_a_hundred_steps_of_any_names_fit_too() -> None:
    chain = {f"{'x' * 58}-{number}": f"{'x' * 58}-{number - 1}" if number else "" for number in range(100)}
    assert max(map(len, lines(views(chain)))) <= 80


def test_mermaid_and_dot_hold_every_step_and_edge() -> None:
    steps = views(PIPELINE, [{"name": "prepare", "phase": "Failed"}], report="")
    chart = mermaid(steps)
    assert chart.startswith("flowchart TD\n")
    assert '    s0["prepare<br/>Failed"]' in chart
    assert "    s0 --> s1" in chart
    assert "    class s0 Failed" in chart
    assert '    s5(["report<br/>script"])' in chart
    graphviz = dot(steps, 'a "name"')
    assert graphviz.startswith('digraph "a \\"name\\"" {')
    assert '  "prepare" -> "train";' in graphviz
    assert graphviz.count("->") == 5
    assert graphviz.endswith("}\n")


EXAMPLE = Path(__file__).parents[2] / "examples" / "ml-workflow" / "training-pipeline.yaml"


@pytest.mark.parametrize(("form", "beginning"), [("text", "○"), ("dot", "digraph"), ("mermaid", "flowchart")])
def test_a_manifest_is_drawn_without_a_cluster(form: str, beginning: str) -> None:
    result = CliRunner().invoke(app, ["workflows", "graph", "-f", str(EXAMPLE), "-o", form])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(beginning)
    assert "register" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "graph needs either the name of a workflow or a manifest with --file"),
        (["x", "-f", "y.yaml"], "graph needs either the name of a workflow or a manifest with --file"),
        (["-f", "nowhere.yaml"], "cannot read nowhere.yaml"),
        (["-f", str(EXAMPLE.parents[1] / "jobs" / "cpu-training.yaml")], "holds no GryviaWorkflow"),
    ],
)
def test_nothing_to_draw_is_a_sentence(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["workflows", "graph", *arguments])
    assert result.exit_code == 1
    assert sentence in result.stderr


def test_rails_of_a_tree() -> None:
    steps, circle = ordered(views({"a": "", "b": "a", "c": "a", "d": "b", "e": "c d"}))
    assert circle == []
    assert [(row.lines, row.step.name if row.step else None) for row in rail_rows(steps)] == [
        ("*", "a"),
        ("├─*", "b"),
        ("│ │", None),
        ("│ *", "d"),
        ("* │", "c"),
        ("│ │", None),
        ("*─╯", "e"),
    ]
