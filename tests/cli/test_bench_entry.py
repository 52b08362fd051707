"""`python -m bench`: one JSON object a line, one measure by name, and an exit code that says whether all hold."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench"
MEASURE = """
NAMES = ({names})
def run():
    yield from ({lines},)
"""


def entry() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_entry", BENCH / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    assert entry().main([], measures) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["bench"] for line in lines] == ["a", "b", "c"]
    assert set(lines[0]) == {"bench", "value", "unit", "goal", "holds"}


def test_a_name_runs_what_prints_it_and_prints_only_that(measures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (measures / "slow.py").write_text("NAMES = ('c',)\nraise RuntimeError('not asked for')\n")
    assert entry().main(["b"], measures) == 0
    assert [json.loads(line)["bench"] for line in capsys.readouterr().out.splitlines()] == ["b"]


def test_an_unknown_name_is_one_sentence_with_the_names_there_are(
    measures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry().main(["d"], measures) == 2
    assert capsys.readouterr().err == "bench: no measure is called 'd'; there are a, b, c\n"


def test_every_measure_of_the_project_declares_its_names() -> None:
    names = [name for path in BENCH.glob("*.py") if path.stem != "__main__" for name in entry().names_of(path)]
    assert {"platform-ready", "platform-memory", "demo-study", "tuner-regret", "bridge-memory"} <= set(names)
    assert len(names) == len(set(names))
