"""What gryvia.outputs leaves in the termination message, as the workflow service reads it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gryvia
from gryvia import results
from gryvia_common.kube.pods import TERMINATION_LIMIT, result

KEYS = st.from_regex(r"[A-Za-z0-9_-]{1,63}", fullmatch=True)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "termination-log"
    monkeypatch.setenv("GRYVIA_TERMINATION_LOG", str(path))
    return path


def read(path: Path) -> dict[str, Any]:
    found, note = result(path.read_text())
    assert note == ""
    return found


def test_outputs_are_texts_in_one_json_object(file: Path) -> None:
    gryvia.outputs({"val-accuracy": 0.91}, samples=1797, good=True, name="digits", model=Path("/models/3"))
    assert read(file) == {
        "val-accuracy": "0.91",
        "samples": "1797",
        "good": "true",
        "name": "digits",
        "model": "/models/3",
    }


def test_calls_add_up_and_a_later_value_wins(file: Path) -> None:
    gryvia.outputs(a=1, b="a long value that becomes a short one")
    gryvia.outputs(b=2)
    gryvia.outputs(c=3)
    assert read(file) == {"a": "1", "b": "2", "c": "3"}
    assert file.stat().st_size == len('{"a":"1","b":"2","c":"3"}')


def test_lists_and_mappings_are_json_for_with_items(file: Path) -> None:
    gryvia.outputs(shards=[0, 1], best={"lr": 0.1}, empty=[])
    assert {name: json.loads(text) for name, text in read(file).items()} == {
        "shards": [0, 1],
        "best": {"lr": 0.1},
        "empty": [],
    }


class Scalar:
    """What torch scalars have in common with numpy's."""

    def __init__(self, value: object) -> None:
        self.value = value

    def tolist(self) -> object:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e22, "1e+22"),
        (0.1 + 0.2, "0.30000000000000004"),
        (3.0, "3.0"),
        (10**30, str(10**30)),
        (False, "false"),
        (Decimal("0.250"), "0.250"),
        (Scalar(0.5), "0.5"),
        (Scalar(7), "7"),
        (Scalar([1, 2]), "[1, 2]"),
        ("Grüße, 世界", "Grüße, 世界"),
        ("", ""),
    ],
)
def test_a_value_is_read_as_it_was_given(file: Path, value: object, text: str) -> None:
    gryvia.outputs(it=value)
    assert read(file) == {"it": text}


def test_numpy(file: Path) -> None:
    numpy = pytest.importorskip("numpy")
    gryvia.outputs(
        a=numpy.int64(4), b=numpy.float32(0.5), c=numpy.bool_(True), d=numpy.array([1, 2]), e=numpy.float64(0.25)
    )
    assert read(file) == {"a": "4", "b": "0.5", "c": "true", "d": "[1, 2]", "e": "0.25"}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"val/acc": 1}, "'val/acc' is no key: write 1 to 63 letters"),
        ({"": 1}, "'' is no key"),
        ({"k" * 64: 1}, "is no key"),
        ({3: 1}, "3 is no key"),
        ({"loss": math.nan}, "loss is NaN"),
        ({"loss": Scalar(math.nan)}, "loss is NaN"),
        ({"loss": -math.inf}, "loss is -inf"),
        ({"best": None}, "best is None, which has no text"),
        ({"it": object()}, "it is a object, which has no text"),
        ({"it": Scalar(RuntimeError("on another device"))}, "it is a Scalar without a plain value: on another device"),
        ({"points": [1, math.nan]}, "points is no JSON"),
        ({"it": "\ud800"}, "it is no text that UTF-8 can hold"),
        ({"text": "x" * 4096}, "the largest is text with 4096 bytes: write it to a volume"),
        ({f"k{number}": 1 for number in range(33)}, ", k0, k1, 31 more, at most 32"),
    ],
)
@pytest.mark.parametrize("under_gryvia", [True, False])
def test_what_cannot_be_handed_on_is_named_and_nothing_is_written(
    file: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], sentence: str, under_gryvia: bool
) -> None:
    if under_gryvia:
        gryvia.outputs(before=1)
    else:
        monkeypatch.delenv("GRYVIA_TERMINATION_LOG")
    with pytest.raises(ValueError, match=r"^outputs: ") as error:
        gryvia.outputs({"good": 1, **values})
    assert sentence in str(error.value)
    if under_gryvia:
        assert read(file) == {"before": "1"}


def test_the_limits_are_of_all_calls_together(file: Path) -> None:
    gryvia.outputs(text="x" * 4000)
    with pytest.raises(ValueError, match="with a, b, at most 4096 are handed on; the largest is text with 4000 bytes"):
        gryvia.outputs(a="y" * 50, b="z" * 50)
    gryvia.outputs(text="short", a="y" * 50)
    assert set(read(file)) == {"text", "a"}


def test_exactly_as_much_as_the_kubelet_keeps_is_handed_on(file: Path) -> None:
    gryvia.outputs(k="x" * (TERMINATION_LIMIT - len('{"k":""}')))
    assert file.stat().st_size == TERMINATION_LIMIT
    assert len(read(file)["k"]) == TERMINATION_LIMIT - 8


@pytest.mark.parametrize("content", ["Killed by the scheduler\n", "[1, 2]", '{"a": ', "x" * 9000, "\x00\xff"])
def test_what_is_no_object_gives_way_whole(file: Path, content: str) -> None:
    file.write_text(content)
    gryvia.outputs(a=1)
    assert file.read_text() == '{"a":"1"}'


def test_outside_of_gryvia_it_is_a_line_and_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "GRYVIA_TERMINATION_LOG"}
    code = "import gryvia; gryvia.results.KUBERNETES_FILE = 'nowhere'; gryvia.outputs({'a-b': 0.5}, n=3)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, env=environ
    )
    assert done.stdout == 'gryvia-outputs {"a-b": "0.5", "n": "3"}\n'
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_an_error_not_a_loss(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRYVIA_TERMINATION_LOG", str(tmp_path))
    with pytest.raises(OSError, match=str(tmp_path)):
        gryvia.outputs(a=1)


def test_a_closed_stdout_loses_no_output(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stream = (tmp_path / "gone").open("w")
    stream.close()
    monkeypatch.setattr(sys, "__stdout__", stream)
    gryvia.outputs(a=1)
    assert read(file) == {"a": "1"}


def test_processes_of_one_container_lose_nothing_of_each_other(file: Path) -> None:
    code = "import gryvia, sys\nfor step in range(40): gryvia.outputs({f'p{sys.argv[1]}-{step % 8}': step})"
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(number)], stdout=subprocess.DEVNULL) for number in range(3)
    ]
    for worker in workers:
        worker.wait()
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert read(file) == {f"p{number}-{step % 8}": str(step) for number in range(3) for step in range(32, 40)}


def test_a_killed_process_leaves_the_outputs_of_before_or_of_after(file: Path) -> None:
    code = "import gryvia\nfor step in range(10**9): gryvia.outputs(step=step, text='x' * (step * 37 % 3000))"
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            for _ in range(20):
                worker.stdout.readline()
            worker.kill()
        found = read(file)
        assert len(found["text"]) == int(found["step"]) * 37 % 3000


def test_a_kill_between_write_and_cut_leaves_whole_outputs(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def kill(descriptor: int, size: int) -> None:
        raise Killed

    gryvia.outputs(text="a long value")
    monkeypatch.setattr(results.os, "ftruncate", kill)
    with pytest.raises(Killed):
        gryvia.outputs(text="x")
    assert read(file) == {"text": "x"}


@given(st.dictionaries(KEYS, st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.integers())))
def test_what_is_written_is_read_again_or_refused(values: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        path = Path(os.environ.get("TMPDIR", "/tmp")) / f"gryvia-outputs-test-{os.getpid()}"
        patch.setenv("GRYVIA_TERMINATION_LOG", str(path))
        try:
            gryvia.outputs(values)
        except ValueError:
            assert len(values) > 32 or len(json.dumps(values).encode()) > 3000
            assert not path.exists() or not path.read_text()
        else:
            assert read(path) == {name: str(value) for name, value in values.items()}
        finally:
            path.unlink(missing_ok=True)
