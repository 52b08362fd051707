"""Names, label values and durations: what is taken is what Kubernetes takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.durations import parse_duration
from gryvia_common.kube.names import is_dns_label, is_label_value, is_service_name, is_subdomain


@pytest.mark.parametrize(
    ("text", "label", "service", "subdomain", "value"),
    [
        ("a", True, True, True, True),
        ("7b-eval", True, False, True, True),
        ("a.b", False, False, True, True),
        ("A_b", False, False, False, True),
        ("a-", False, False, False, False),
        ("-a", False, False, False, False),
        ("a b", False, False, False, False),
        ("a\n", False, False, False, False),
        ("ä", False, False, False, False),
        ("", False, False, False, False),
        ("x" * 63, True, True, True, True),
        ("x" * 64, False, False, True, False),
        ("x" * 254, False, False, False, False),
    ],
)
def test_each_kind_of_name_takes_its_own(text, label, service, subdomain, value):
    found = (is_dns_label(text), is_service_name(text), is_subdomain(text), is_label_value(text))
    assert found == (label, service, subdomain, value)


def test_a_length_is_forgiven_where_it_is_shortened_and_bounded_where_it_becomes_a_label():
    assert is_dns_label("x" * 200, any_length=True)
    assert not is_dns_label("X" * 200, any_length=True)
    assert not is_subdomain("x" * 64, longest=63)


@given(st.tuples(*[st.integers(0, 999)] * 4).filter(any))
def test_a_duration_is_the_sum_of_its_parts(parts):
    text = "".join(f"{number}{unit}" for number, unit in zip(parts, "dhms", strict=True) if number)
    days, hours, minutes, seconds = parts
    assert parse_duration(text) == ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@pytest.mark.parametrize("text", ["", "0m", "0d0h", "90", "1.5h", "-5m", "5m ", "1h1d", "1h1h", "soon", "٣m", "1_0m"])
def test_anything_else_is_no_duration(text):
    assert parse_duration(text) is None
