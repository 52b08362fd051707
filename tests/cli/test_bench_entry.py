"""`python -m bench`: one JSON object a line, one measure by name, and an exit code that says whether all hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import __main__ as entry

BENCH = Path(__file__).parents[2] / "bench"
MEASURE = """
NAMES = ({names})
def run(wanted):
    assert wanted
    yield from ({lines},)
"""


@pytest.fixture
def measures(tmp_path: Path) -> Path:
    for file, rows in {"fast": {"a": True, "b": True}, "slow": {"c": False}}.items():
        lines = ",".join(
            repr({"bench": name, "value": 1, "unit": "s", "goal": 2, "holds": holds}) for name, holds in rows.items()
        )
        names = "".join(f"{name!r}," for name in rows)
        (tmp_path / f"{file}.py").write_text(MEASURE.format(names=names, lines=lines))
    return tmp_path


def test_every_measure_is_a_line_and_one_that_does_not_hold_is_exit_code_1(
    measures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.main([], measures) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["bench"] for line in lines] == ["a", "b", "c"]
    assert set(lines[0]) == {"bench", "value", "unit", "goal", "holds"}


def test_a_name_runs_what_prints_it_and_prints_only_that(measures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (measures / "slow.py").write_text("NAMES = ('c',)\nraise RuntimeError('not asked for')\n")
    (measures / "beside.py").write_text("raise RuntimeError('no measure')\n")
    assert entry.main(["b"], measures) == 0
    assert [json.loads(line)["bench"] for line in capsys.readouterr().out.splitlines()] == ["b"]


def test_an_unknown_name_is_one_sentence_with_the_names_there_are(
    measures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.main(["d"], measures) == 2
    assert capsys.readouterr().err == "bench: no measure is called 'd'; there are a, b, c\n"


def test_a_measure_is_told_which_of_its_names_is_wanted(measures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    echo = "NAMES = ('d', 'e')\ndef run(wanted):\n    yield from ({'bench': name, 'holds': True} for name in wanted)\n"
    (measures / "echo.py").write_text(echo)
    assert entry.main(["e"], measures) == 0
    assert json.loads(capsys.readouterr().out)["bench"] == "e"


def test_a_measure_without_names_is_an_error(measures: Path) -> None:
    (measures / "nameless.py").write_text("def run(wanted):\n    return []\n")
    with pytest.raises(ValueError, match=r"nameless\.py has no NAMES"):
        entry.measures(measures)


def test_every_measure_of_the_project_declares_its_names() -> None:
    names = [name for found in entry.measures().values() for name in found]
    assert {"platform-ready", "platform-memory", "demo-study", "tuner-regret", "bridge-memory", "quiet-writes"} <= set(
        names
    )
    assert len(names) == len(set(names))
