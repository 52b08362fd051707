"""The value of a metric and its course, as a GryviaAIJob reports them."""

from __future__ import annotations

from typing import Any

import pytest

from gryvia_common.kinds.reported import metric_of, points_of
from gryvia_common.kube.objects import Json


def job(annotations: Json | None = None, message: str = "", **metrics: Any) -> Json:
    return {
        "metadata": {"annotations": {f"gryvia.io/metric-{name}": text for name, text in (annotations or {}).items()}},
        "status": {"message": message, "metrics": metrics},
    }


@pytest.mark.parametrize(
    ("given", "metric", "value"),
    [
        (job({"acc": "0.5"}, values={"acc": 0.9}), "acc", 0.5),
        (job(values={"acc": 0.9}), "acc", 0.9),
        (job({"val_acc": "1e-3"}), "val/acc", 0.001),
        (job(loss=2), "loss", 2.0),
        (job(loss=2, values={"loss": 1}), "loss", 1.0),
    ],
)
def test_the_first_place_that_has_a_value_gives_it(given: Json, metric: str, value: float) -> None:
    assert metric_of(given, metric) == (value, "")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (job({"acc": "nan"}), 'annotation gryvia.io/metric-acc: "nan" is not a plain finite decimal number'),
        (job(values={"acc": float("inf")}), 'status.metrics of the job: "inf" is not a finite number for acc'),
        (job(values={"acc": True}), 'status.metrics of the job: "True" is not a finite number for acc'),
        (job(message="no log"), "the job did not report the metric acc: no log"),
        ({}, "the job did not report the metric acc"),
    ],
)
def test_what_is_no_number_is_no_value_and_says_why(given: Json, why: str) -> None:
    assert metric_of(given, "acc") == (None, why)


def test_the_course_counts_in_epochs_where_there_are_any_and_leaves_out_what_is_not_finite() -> None:
    given = job(
        history=[
            {"step": 500, "values": {"epoch": 1, "acc": 0.1}},
            {"step": 7, "values": {"acc": 0.2}},
            {"step": 8, "values": {"acc": float("nan")}},
            {"step": -1, "values": {"acc": 0.3}},
            {"step": 9, "values": {"other": 1.0}},
        ],
        values={"acc": 0.4},
        step=9,
    )
    assert sorted(points_of(given, "acc")) == [(1, 0.1), (7, 0.2), (9, 0.4)]
