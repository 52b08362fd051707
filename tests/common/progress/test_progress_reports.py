"""Numbers out of lines, their history, and the place in a log: the pure parts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gryvia_common.kinds.aijob import METRIC_HISTORY, MetricPoint
from gryvia_common.numbers import parse_decimal
from gryvia_common.progress.history import add_point
from gryvia_common.progress.patterns import compile_pattern
from gryvia_common.progress.reports import (
    MOST_NAMES,
    Reading,
    annotated,
    continued,
    meant_as_numbers,
    read_lines,
    read_values,
)
from gryvia_common.progress.tail import Cursor, new_lines


def report(**values):
    return "gryvia-report " + json.dumps(values)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_python_prints_is_a_number(value):
    assert parse_decimal(repr(value)) == value


@given(st.text(alphabet="0123456789+-.eE_ naif\n٣", max_size=12))
def test_a_number_is_always_finite_and_python_agrees(text):
    value = parse_decimal(text)
    if value is not None:
        assert value == float(text)
        assert abs(value) < float("inf")
        assert text == text.strip()
        assert "_" not in text


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=400, unique=True).map(sorted))
@settings(max_examples=60)
def test_history_stays_bounded_and_keeps_first_newest_and_the_rungs(steps):
    history: tuple[MetricPoint, ...] = ()
    for step in steps:
        history = add_point(history, step, {"loss": float(step)})
        kept = [point.step for point in history]
        assert len(history) <= METRIC_HISTORY
        assert kept[0] == steps[0]
        assert kept[-1] == step
        assert kept == sorted(set(kept))


def test_history_of_a_long_run_answers_at_each_rung():
    history: tuple[MetricPoint, ...] = ()
    for step in range(1, 10_001):
        history = add_point(history, step, {"loss": float(step)})
    kept = [point.step or 0 for point in history]
    for rung in (1, 2, 3, 4, 8, 9, 16, 27, 32, 64, 81, 243, 729, 2187, 6561):
        assert min(step for step in kept if step >= rung) <= rung * 1.2, (rung, kept)


def test_a_run_that_goes_back_drops_the_later_points():
    history: tuple[MetricPoint, ...] = ()
    for step in (1, 2, 3, 4, 2):
        history = add_point(history, step, {"loss": float(step)})
    assert [point.step for point in history] == [1, 2]


def test_reports_without_steps_are_counted():
    reading = read_lines(Reading(), [report(loss=3), report(loss=2, acc=1), report(loss=1)], {})
    assert [point.step for point in reading.history] == [1, 2, 3]


def test_a_progress_bar_in_front_of_a_report_does_not_hide_it():
    reading = read_lines(Reading(), ["\r 10%|█▏ | 1/10 " + report(step=1, loss=0.5) + "\r 20%|██"], {})
    assert reading.values == {"step": 1, "loss": 0.5}


def test_a_hostile_pattern_is_linear_and_a_bad_one_says_why():
    evil = {"x": r"(a+)+$"}
    with pytest.raises(ValueError, match="2 groups instead of one"):
        compile_pattern(r"(a)(b)")
    with pytest.raises(ValueError, match="RE2"):
        compile_pattern(r"(?=x)(y)")
    reading = read_lines(Reading(), ["a" * 10_000 + "!"] * 20, evil)
    assert not reading.values


MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


@given(
    st.lists(st.integers(0, 1500), min_size=1, max_size=60),
    st.lists(st.integers(0, 60), max_size=10),
)
def test_every_line_is_read_exactly_once_wherever_the_reads_fall(gaps, cuts):
    """Lines arrive at any distance in time (many in the same millisecond), reads happen anywhere between them."""
    moment, rows = MOMENT, []
    for number, gap in enumerate(gaps):
        moment += timedelta(milliseconds=gap)
        rows.append((moment, f"line {number}"))
    cursor: Cursor | None = None
    seen: list[str] = []
    for end in [*sorted(min(cut, len(rows)) for cut in cuts), len(rows)]:
        since = datetime.fromisoformat(cursor.since.replace("Z", "+00:00")) if cursor else MOMENT
        shown = [row for row in rows[:end] if row[0] >= since]
        data = "".join(f"{at.strftime('%Y-%m-%dT%H:%M:%S.%f')}Z {text}\n" for at, text in shown).encode()
        lines, cursor = new_lines(data, cursor, cut=False, ended=False)
        seen += lines
    assert seen == [text for _, text in rows]


def test_an_unfinished_line_waits_for_its_end():
    data = b"2026-03-01T00:00:00.5Z whole\n2026-03-01T00:00:01Z ha"
    assert new_lines(data, None, cut=False, ended=False)[0] == ["whole"]
    assert new_lines(data, None, cut=False, ended=True)[0] == ["whole", "ha"]
    assert new_lines(data, None, cut=True, ended=True)[0] == ["whole"], "the rest of the line is in the next answer"


def test_lines_written_at_the_same_time_are_told_apart_by_their_number():
    stamp = "2026-03-01T00:00:00.25Z"
    first, cursor = new_lines(f"{stamp} a\n{stamp} b\n".encode(), None, cut=False, ended=False)
    again, cursor = new_lines(f"{stamp} a\n{stamp} b\n{stamp} c\n".encode(), cursor, cut=False, ended=False)
    assert (first, again) == (["a", "b"], ["c"])
    assert new_lines(f"{stamp} a\n{stamp} b\n{stamp} c\n".encode(), cursor, cut=False, ended=False) == ([], cursor)


def test_a_cursor_past_its_second_takes_nothing_of_that_second():
    cursor = Cursor("2026-02-28T23:59:59", "5" * 9, "Z", 3).next_second()
    assert cursor.since == "2026-03-01T00:00:00Z"
    data = b"2026-02-28T23:59:59.9Z old\n2026-03-01T00:00:00Z new\n"
    assert new_lines(data, cursor, cut=False, ended=False)[0] == ["new"]


def test_a_line_of_a_report_is_not_searched_for_patterns():
    reading = read_lines(Reading(), [report(loss=0.5), "loss 0.25"], {"loss": r"loss[^0-9]*([0-9.]+)"})
    assert [point.values["loss"] for point in reading.history] == [0.5, 0.25]
    assert reading.reports == 2


def test_a_line_above_the_limit_is_not_looked_at():
    assert read_lines(Reading(), [report(loss=1) + "x" * 16 * 1024], {}) == Reading()


def test_names_above_the_limit_are_left_out_and_named():
    first = read_lines(Reading(), [report(**{f"m{n}": n for n in range(MOST_NAMES)})], {})
    reading = read_lines(first, [report(m0=7, another=1), report(more=2)], {})
    assert len(reading.values) == MOST_NAMES
    assert reading.values["m0"] == 7
    assert reading.notes == (
        f"more than {MOST_NAMES} metric names were reported; only the first {MOST_NAMES} are kept",
    )
    assert reading.reports == 2


def test_a_step_counts_and_an_epoch_where_there_is_none():
    epochs = read_lines(Reading(), [report(epoch=3, loss=1), report(epoch=4, loss=2)], {})
    assert [point.step for point in epochs.history] == [3, 4]
    steps = read_lines(
        Reading(), [report(epoch=3, step=30, loss=1), report(epoch=4, loss=2), report(step=45, loss=3)], {}
    )
    assert [point.step for point in steps.history] == [30, 45]
    assert steps.history[0].values["loss"] == 2, "the second report still belongs to step 30"


def test_values_from_outside_the_log_are_newest_but_no_point_of_the_course():
    reading = read_values(read_lines(Reading(), [report(step=1, loss=2)], {}), {"loss": "0.5", "acc": "inf"})
    assert reading.values == {"step": 1, "loss": 0.5}
    assert [point.values["loss"] for point in reading.history] == [2]
    assert reading.notes == ('metric acc: "inf" is not a plain finite decimal',)


def test_a_reading_goes_on_from_what_was_known_before():
    before = read_lines(Reading(), [report(step=n, loss=n, acc=0.1) for n in (1, 2, 3)], {})
    later = read_lines(Reading(), [report(step=3, loss=30), report(step=4, loss=40)], {})
    joined = continued(before, later)
    assert [(point.step, point.values["loss"]) for point in joined.history] == [(1, 1), (2, 2), (3, 30), (4, 40)]
    assert joined.values == {"step": 4, "loss": 40, "acc": 0.1}
    assert continued(before, Reading()).history == before.history


def test_of_a_json_object_only_what_is_meant_as_a_number_is_taken():
    found = {"a": 1, "b": "0.5", "c": "nan", "d": "text", "e": True, "f": None, "g": [1]}
    assert meant_as_numbers(found) == {"a": 1, "b": "0.5", "c": "nan"}


def test_annotations_are_metrics_by_their_prefix():
    annotations = {"gryvia.io/metric-loss": "0.5", "gryvia.io/output-x": "1", "metric-acc": "1"}
    assert annotated(annotations) == {"loss": "0.5"}
