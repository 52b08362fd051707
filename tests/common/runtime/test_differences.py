"""What is sent is exactly what differs, and what the server added is no difference."""

from __future__ import annotations

import json_merge_patch
from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.runtime.differences import covers, merge_difference, project

scalars = st.one_of(st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "b"]))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@given(objects, objects)
def test_the_patch_makes_the_current_state_into_the_desired_one(current: dict, desired: dict) -> None:
    patch = merge_difference(current, desired, removable=frozenset("abcd"))
    assert json_merge_patch.merge(current, patch) == desired


@given(objects)
def test_equal_states_need_no_patch(state: dict) -> None:
    assert merge_difference(state, state, removable=frozenset("abcd")) == {}


@given(objects, objects)
def test_keys_of_other_writers_stay(current: dict, desired: dict) -> None:
    patch = merge_difference(current, desired, removable=frozenset("ab"))
    result = json_merge_patch.merge(current, patch)
    assert {key: result[key] for key in current if key in "cd" and key not in desired} == {
        key: current[key] for key in current if key in "cd" and key not in desired
    }


@given(objects)
def test_everything_covers_itself_and_projects_onto_itself(state: dict) -> None:
    assert covers(state, state)
    assert project(state, state) == state


def test_server_defaults_are_no_drift_and_a_users_change_is() -> None:
    desired = {"spec": {"ports": [{"port": 80}], "selector": {}}}
    live = {"spec": {"ports": [{"port": 80, "protocol": "TCP"}], "type": "ClusterIP"}}
    assert covers(live, desired)
    live["spec"]["ports"][0]["port"] = 81
    assert not covers(live, desired)


def test_a_value_the_server_rewrote_is_recognised_by_its_projection() -> None:
    desired = {"resources": {"limits": {"cpu": "1000m"}}}
    live = {"resources": {"limits": {"cpu": "1"}}, "dnsPolicy": "ClusterFirst"}
    assert not covers(live, desired)
    assert project(live, desired) == {"resources": {"limits": {"cpu": "1"}}}
