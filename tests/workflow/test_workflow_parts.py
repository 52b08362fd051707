"""The pure parts against laws: placeholders, outputs, waits."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.kinds.workflow import Step
from gryvia_workflow import outputs
from gryvia_workflow.attempts import LONGEST_WAIT, due_at
from gryvia_workflow.run import Task, cut


def test_a_value_that_looks_like_a_placeholder_is_not_replaced_again(workflow):
    cluster = workflow(
        {
            "name": "a",
            "script": {
                "image": "i",
                "command": ["{{parameters.x}}", "{{ parameters.x }}", "{{parameters.x}}{{workflow.run}}"],
            },
        },
        parameters={"x": "{{workflow.name}}"},
    )
    command = cluster.child("wf-a")["spec"]["containers"][0]["command"]
    assert command == ["{{workflow.name}}", "{{workflow.name}}", "{{workflow.name}}0"]


@given(
    values=st.dictionaries(
        st.text("ab_-9", min_size=1, max_size=63),
        st.text(st.characters(exclude_categories=("Cs",)), max_size=500),
        max_size=40,
    )
)
def test_outputs_are_taken_whole_or_left_out_by_name(values):
    found = outputs.reported(json.dumps(values)[:4095] if len(json.dumps(values)) < 4096 else "{}", {})
    if len(json.dumps(values)) < 4096:
        assert dict(found.values) == dict(list(values.items())[:32])
        assert bool(found.left_out) == (len(values) > 32)


@given(text=st.text(max_size=300), longest=st.integers(3, 100))
def test_what_is_cut_fits_and_stays_as_it_is(text, longest):
    text = text.encode(errors="ignore").decode()
    short = cut(text, longest)
    assert len(short.encode()) <= max(longest, 3)
    assert cut(short, longest) == short


@given(
    seconds=st.integers(1, 2**31 - 1),
    factor=st.none() | st.floats(1, 1e300),
    longest=st.none() | st.integers(0, 2**31 - 1),
    retries=st.integers(1, 10),
)
def test_every_wait_is_finite_and_within_its_bound(seconds, factor, longest, retries):
    step = Step(name="a", retry_backoff_seconds=seconds, retry_backoff_factor=factor, retry_backoff_max_seconds=longest)
    at = due_at(Task("a", ended="2026-01-01T00:00:00Z", retries=retries), step)
    before = due_at(Task("a", ended="2026-01-01T00:00:00Z", retries=max(1, retries - 1)), step)
    assert before <= at
    wait = (
        at - due_at(Task("a", ended="2026-01-01T00:00:00Z", retries=1), Step(name="a", retry_backoff_seconds=1))
    ).total_seconds() + 1
    assert 0 <= wait <= (LONGEST_WAIT if longest is None else longest) + 1e-6
