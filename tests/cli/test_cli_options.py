"""The command line as a whole: its groups, its global options on either side of the verb, its exit codes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from gryvia_cli.__main__ import app
from gryvia_cli.options import Output
from gryvia_cli.session import Session
from gryvia_cli.verb import CLUSTER, NAMESPACE, OUTPUT, verb

RUNNER = CliRunner()


def one_verb(seen: list[Any]) -> typer.Typer:
    """A program with one verb that notes what it was given."""
    small = typer.Typer()

    @verb(CLUSTER, NAMESPACE, OUTPUT)
    async def look(session: Session, name: str, often: int = 1) -> int:
        """Look at it."""
        seen.append((session, name, often))
        return 3

    main: Callable[..., None] = app.registered_callback.callback  # type: ignore[union-attr, assignment]
    small.callback()(main)
    small.command()(look)
    small.command()(lambda: None)
    return small


@pytest.mark.parametrize(
    "arguments",
    [
        ["-n", "team", "--context", "east", "-o", "json", "--no-color", "look", "it"],
        ["look", "it", "-n", "team", "--context", "east", "-o", "json", "--no-color"],
        ["-n", "other", "-o", "yaml", "--context", "east", "look", "-n", "team", "it", "-o", "json", "--no-color"],
    ],
)
def test_global_options_mean_the_same_before_and_after_the_verb_and_the_later_wins(arguments: list[str]) -> None:
    seen: list[Any] = []
    result = RUNNER.invoke(one_verb(seen), arguments)
    assert result.exit_code == 3, result.output
    assert seen == [(Session(context="east", namespace="team", output=Output.JSON, color=False), "it", 1)]


def test_without_options_the_namespace_is_default_and_the_own_options_keep_their_defaults() -> None:
    seen: list[Any] = []
    RUNNER.invoke(one_verb(seen), ["look", "it", "--often", "4"], env={"GRYVIA_NAMESPACE": ""})
    assert seen == [(Session(), "it", 4)]
    assert seen[0][0].place == "default"


def test_help_lists_every_verb_in_its_group() -> None:
    text = RUNNER.invoke(app, ["--help"], env={"COLUMNS": "100", "TERM": "dumb"}).output
    groups: dict[str, list[str]] = {}
    for line in text.splitlines():
        if title := re.match(r"╭─ ([A-Z][\w& ]+) ─", line):
            groups[title[1]] = []
        elif (name := re.match(r"│ (\w+) ", line)) and groups:
            groups[list(groups)[-1]].append(name[1])
    assert {title: verbs for title, verbs in groups.items() if "option" not in title.lower()} == {
        "Platform": ["up", "demo"],
        "Workloads": ["submit", "status", "logs", "cancel", "delete"],
        "Cluster": ["list", "get", "queue"],
        "Tenants & Billing": ["quota"],
        "ML": ["trials", "workflows", "models"],
        "Observe": ["events"],
        "Utilities": ["validate"],
    }


@pytest.mark.parametrize(
    "arguments", [["list"], ["nonsense"], ["list", "jobs", "-o", "xml"], ["up", "--port", "70000"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    assert RUNNER.invoke(app, arguments).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["list", "things"], "unknown kind 'things'; there are jobs, tuners"),
        (["events", "jbo"], "no event is called 'jbo'; there are job, model, trial, tuner, workflow"),
        (["events", "--since", "soon"], "--since 'soon': write `new`, `all` or a duration such as 10m, 2h, 1d"),
        (["submit", "-f", "nowhere.yaml"], "cannot read nowhere.yaml: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_1(arguments: list[str], sentence: str) -> None:
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"gryvia: {sentence}")
    assert result.stderr.count("\n") == 1


def test_no_platform_and_no_cluster_is_a_sentence_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    result = RUNNER.invoke(app, ["list", "jobs"])
    assert result.exit_code == 1
    assert "none" in result.stderr
    monkeypatch.delenv("KUBECONFIG")
    (tmp_path / ".gryvia").mkdir()
    (tmp_path / ".gryvia" / "format").write_text("1\n")
    (tmp_path / ".gryvia" / "kubeconfig").write_text("{}")
    for command in (["list", "jobs"], ["status"], ["trials", "x"]):
        result = RUNNER.invoke(app, command)
        assert result.exit_code == 1
        assert "no platform runs in" in result.stderr
        assert "`gryvia up`" in result.stderr
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / ".gryvia" / "kubeconfig"))
    assert "no platform runs in" in RUNNER.invoke(app, ["list", "jobs"]).stderr, "kubectl's way to name it is ours too"
    result = RUNNER.invoke(app, ["events"])
    assert result.exit_code == 1
    assert "run `gryvia up`, or name the NATS server" in result.stderr


def test_a_nats_that_does_not_answer_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gryvia_cli.bus.ANSWER_SECONDS", 0.3)
    monkeypatch.setenv("GRYVIA_NATS_URL", "nats://127.0.0.1:1")
    result = RUNNER.invoke(app, ["events"])
    assert result.exit_code == 1
    assert "127.0.0.1:1 does not answer" in result.stderr
    assert "is GRYVIA_NATS_URL right?" in result.stderr
