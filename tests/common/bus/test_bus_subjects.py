"""Subjects: one to one with what they address, legal for NATS, and dealt over the partitions evenly."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.bus.subjects import (
    PARTITIONS,
    ObjectSubject,
    escape,
    event_subject,
    object_subject,
    objects_filter,
    parse_event_subject,
    parse_object_subject,
    partition_of,
    sync_subject,
    unescape,
)

names = st.text(min_size=1, max_size=40)
dns_names = st.from_regex(r"[a-z0-9]([a-z0-9.\-]{0,30}[a-z0-9])?", fullmatch=True)


@given(names)
def test_any_name_survives_the_way_through_a_token(name: str) -> None:
    assert unescape(escape(name)) == name


@given(names)
def test_a_token_has_nothing_that_nats_would_read_as_its_own(name: str) -> None:
    assert not set(escape(name)) & set(". *>\t\r\n")
    assert escape(name).isascii()


@given(names, names)
def test_two_names_never_share_a_token(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) == (one == other)


@given(dns_names, st.integers(0, PARTITIONS - 1), st.one_of(st.just(""), dns_names), dns_names)
def test_an_object_subject_reads_back_as_what_it_was_made_of(plural: str, part: int, space: str, name: str) -> None:
    assert parse_object_subject(object_subject(plural, part, space, name)) == ObjectSubject(plural, part, space, name)


@given(st.one_of(st.just(""), dns_names), dns_names)
def test_an_event_subject_reads_back_as_what_it_was_made_of(space: str, name: str) -> None:
    parsed = parse_event_subject(event_subject("trial", "completed", space, name))
    assert (parsed.noun, parsed.verb, parsed.namespace, parsed.name) == ("trial", "completed", space, name)


def test_the_addresses_of_the_contract() -> None:
    assert object_subject("gryviaaijobs", 3, "team", "a.b") == "gryvia.object.gryviaaijobs.3.team.a=2Eb"
    assert object_subject("nodes", 0, "", "n1") == "gryvia.object.nodes.0._.n1"
    assert objects_filter("pods") == "gryvia.object.pods.>"
    assert sync_subject("pods") == "gryvia.sync.pods"


@pytest.mark.parametrize(
    "subject", ["gryvia.object.jobs.1.ns", "gryvia.event.job.started.ns.a", "gryvia.object.jobs.x.ns.a", ""]
)
def test_a_strange_subject_is_refused(subject: str) -> None:
    with pytest.raises(ValueError):
        parse_object_subject(subject)


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        escape("")


def test_the_partition_is_fnv_1a_32() -> None:
    # The published test vector: fnv1a32("a/b…") computed with the reference constants for "foobar" is 0xbf9cf968.
    assert partition_of("foo", "bar") == _reference_fnv(b"foo/bar") % PARTITIONS
    assert _reference_fnv(b"foobar") == 0xBF9CF968


def test_a_thousand_names_are_spread_over_all_partitions() -> None:
    counts = Counter(partition_of("default", f"job-{number}") for number in range(1600))
    assert set(counts) == set(range(PARTITIONS))
    assert max(counts.values()) < 2 * 100


def _reference_fnv(data: bytes) -> int:
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) % 2**32
    return value
