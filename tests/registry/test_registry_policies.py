"""What a promotion policy says of numbers that are texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.kinds.modelregistry import PromotionPolicy
from gryvia_models.policies import judge


def said(policy, mine, theirs=None, *, name="v1"):
    found = judge(
        PromotionPolicy(metric="m", **policy), mine, (name, theirs) if theirs is not None else None, approval=None
    )
    return found.decision, found.reason


@pytest.mark.parametrize(
    ("policy", "mine", "theirs", "expected"),
    [
        ({}, {}, None, ("Waiting", "MetricMissing")),
        ({}, {"m": "nan"}, None, ("Rejected", "NotANumber")),
        ({}, {"m": "inf"}, None, ("Rejected", "NotANumber")),
        ({}, {"m": "1_000"}, None, ("Rejected", "NotANumber")),
        ({}, {"m": " 0.5"}, None, ("Rejected", "NotANumber")),
        ({}, {"m": "0."}, None, ("Rejected", "NotANumber")),
        ({}, {"m": "1e999"}, None, ("Rejected", "NotANumber")),
        ({}, {"m": "-0.5"}, None, ("Promoted", "Promoted")),
        ({"threshold": "0.9"}, {"m": "0.9"}, None, ("Promoted", "Promoted")),
        ({"threshold": "0.9"}, {"m": "0.899999"}, None, ("Rejected", "PastThreshold")),
        ({"threshold": "0.9", "direction": "minimize"}, {"m": "0.91"}, None, ("Rejected", "PastThreshold")),
        ({}, {"m": "0.5"}, {"m": "0.5"}, ("Rejected", "NotBetter")),
        ({}, {"m": "0.50001"}, {"m": "0.5"}, ("Promoted", "Promoted")),
        ({"direction": "minimize"}, {"m": "0.49"}, {"m": "0.5"}, ("Promoted", "Promoted")),
        ({"direction": "minimize"}, {"m": "0.51"}, {"m": "0.5"}, ("Rejected", "NotBetter")),
        ({"minDelta": "0.2"}, {"m": "0.3"}, {"m": "0.1"}, ("Promoted", "Promoted")),
        ({"minDelta": "0.2"}, {"m": "0.2999"}, {"m": "0.1"}, ("Rejected", "NotBetter")),
        ({}, {"m": "0.9"}, {}, ("Rejected", "ProductionNotComparable")),
        ({}, {"m": "0.9"}, {"m": "good"}, ("Rejected", "ProductionNotComparable")),
        ({"stderrMetric": "e"}, {"m": "0.9"}, {"m": "0.5"}, ("Waiting", "MetricMissing")),
        ({"stderrMetric": "e"}, {"m": "0.9", "e": "-1"}, {"m": "0.5"}, ("Rejected", "NotANumber")),
        ({"stderrMetric": "e"}, {"m": "0.9", "e": "x"}, None, ("Rejected", "NotANumber")),
        ({"stderrMetric": "e"}, {"m": "0.55", "e": "0.03"}, {"m": "0.5", "e": "0.04"}, ("Rejected", "WithinNoise")),
        ({"stderrMetric": "e"}, {"m": "0.551", "e": "0.03"}, {"m": "0.5", "e": "0.04"}, ("Promoted", "Promoted")),
        ({"stderrMetric": "e"}, {"m": "0.53", "e": "0.03"}, {"m": "0.5"}, ("Rejected", "WithinNoise")),
        ({"stderrMetric": "e"}, {"m": "0.531", "e": "0.03"}, {"m": "0.5", "e": "x"}, ("Promoted", "Promoted")),
    ],
)
def test_the_judgement(policy, mine, theirs, expected):
    assert said(policy, mine, theirs) == expected


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-1000, max_value=1000)


@given(DECIMALS, DECIMALS, st.sampled_from(["maximize", "minimize"]))
def test_of_two_entries_at_most_one_is_better_than_the_other(a, b, direction):
    """So no two can replace each other for ever."""
    policy = {"direction": direction}
    first = said(policy, {"m": f"{a:f}"}, {"m": f"{b:f}"})[0]
    second = said(policy, {"m": f"{b:f}"}, {"m": f"{a:f}"})[0]
    assert (first, second).count("Promoted") == (a != b)
