"""What gryvia.report prints, as the job service reads it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gryvia
from gryvia.reporting import _lines


def printed(capfd):
    lines = capfd.readouterr().out.splitlines()
    assert all(line.startswith("gryvia-report ") for line in lines)
    return [json.loads(line.removeprefix("gryvia-report ")) for line in lines]


@pytest.fixture
def real_stdout(monkeypatch, capfd):
    """sys.__stdout__ of the test process is pytest's; the file descriptor is what a pod's log shows."""
    with open(1, "w", closefd=False) as stream:
        monkeypatch.setattr(sys, "__stdout__", stream)
        yield capfd


def test_a_report_is_one_line_of_json(real_stdout):
    gryvia.report(step=3, val_accuracy=0.91)
    assert printed(real_stdout) == [{"step": 3, "val_accuracy": 0.91}]


def test_it_works_in_a_plain_process_and_is_flushed_at_once():
    code = "import gryvia, os; gryvia.report({'val/acc': 0.5}, epoch=1); os._exit(0)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == 'gryvia-report {"epoch": 1, "val/acc": 0.5}\n'


def test_it_reaches_the_log_though_stdout_is_redirected():
    code = "import contextlib, io, gryvia\nwith contextlib.redirect_stdout(io.StringIO()): gryvia.report(loss=1)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == 'gryvia-report {"loss": 1}\n'


class Scalar:
    """What numpy and torch scalars have in common."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value


class Hostile:
    def __float__(self) -> float:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (True, 1),
        (Decimal("0.25"), 0.25),
        (Scalar(0.5), 0.5),
        (Scalar(math.nan), "nan"),
        (Hostile(), "Hostile"),
        (None, "NoneType"),
        ("0.7", "0.7"),
        ([1, 2], "list"),
        (10**400, "int"),
    ],
)
def test_what_is_no_finite_number_is_named_and_nothing_raises(real_stdout, value, shown):
    gryvia.report(loss=value)
    assert printed(real_stdout) == [{"loss": shown}]


def test_numpy_scalars(real_stdout):
    numpy = pytest.importorskip("numpy")
    gryvia.report(step=numpy.int64(4), loss=numpy.float32(0.5), hit=numpy.bool_(True), bad=numpy.float64("nan"))
    assert printed(real_stdout) == [{"step": 4, "loss": 0.5, "hit": 1, "bad": "nan"}]


def test_a_closed_stdout_does_not_end_the_training(monkeypatch, tmp_path):
    stream = (tmp_path / "gone").open("w")
    stream.close()
    monkeypatch.setattr(sys, "__stdout__", stream)
    gryvia.report(loss=1.0)


def test_lines_of_several_threads_stay_whole(real_stdout):
    def work(rank: int) -> None:
        for step in range(50):
            gryvia.report(step=step, rank=rank, loss=1.5)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(printed(real_stdout)) == 400


@given(
    st.dictionaries(st.text(min_size=1, max_size=60), st.floats(allow_nan=False, allow_infinity=False), max_size=300)
)
def test_long_reports_are_split_without_losing_a_name(values):
    values.pop("step", None)
    lines = list(_lines({"step": 7, **values}))
    assert all(len(line) < 4096 for line in lines)
    parts = [json.loads(line) for line in lines]
    assert all(part["step"] == 7 for part in parts)
    merged = {name: value for part in parts for name, value in part.items() if name != "step"}
    assert merged == values


def test_parameters_are_typed():
    environ = {
        "HP_lr": "0.001",
        "HP_layers": "3",
        "HP_optimizer": "adam",
        "HP_x": "1_000",
        "HP_y": "nan",
        "PATH": "/bin",
    }
    assert gryvia.parameters(environ) == {"lr": 0.001, "layers": 3, "optimizer": "adam", "x": "1_000", "y": "nan"}


def test_parameters_are_empty_outside_a_trial(monkeypatch):
    monkeypatch.delenv("HP_lr", raising=False)
    assert "lr" not in gryvia.parameters()
