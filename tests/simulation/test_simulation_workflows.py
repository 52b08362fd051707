"""Random workflows with a fault anywhere: no step twice, none lost, the same end, the same events, and silence afterwards.

A plan that fails is named in full and can be carried out alone: `carry_out(Plan(scenario_named("workflow/..."), fault, at, process))`.
"""

from __future__ import annotations

import os
import random
from concurrent.futures import ProcessPoolExecutor

import pytest
from campaign import Plan, carry_out, plans
from node import Course
from scenarios import Scenario, create, job_spec
from workers import judge_all, reference_of, scenario_named

from gryvia_common.kinds.workflow import WORKFLOW

SEED = int(os.environ.get("GRYVIA_FAULTS_SEED") or 20260301)
MANY = bool(os.environ.get("GRYVIA_FAULTS"))
GRAPHS, SHARE = (60, 10) if MANY else (6, 4)


@pytest.mark.timeout(600)
def test_no_step_runs_twice_and_none_is_lost(
    pool: ProcessPoolExecutor | None, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen: list[Plan] = []
    ends = set()
    for number in range(GRAPHS):
        scenario = scenario_named(f"workflow/{SEED}/{number}")
        reference = reference_of(scenario.name)
        assert not reference.late_effects
        status = reference.state[f"{WORKFLOW.plural}/wf"]["status"]
        assert all(step["phase"] in ("Succeeded", "Failed", "Skipped") for step in status["stepStatuses"])
        ends.add(status["phase"])
        everything = list(plans(scenario, reference))
        chosen += random.Random(scenario.name).sample(everything, min(SHARE, len(everything)))
    verdicts = list(judge_all(pool, chosen))
    if MANY:
        seconds = sum(verdict.seconds for verdict in verdicts)
        with capsys.disabled():
            print(f"workflows: {len(chosen)} plans of {GRAPHS} graphs, seed {SEED}, {seconds:.1f} s of CPU")
    assert ends == {"Succeeded", "Failed"}
    assert not {verdict.plan: verdict.differences for verdict in verdicts if verdict.differences}


def test_the_same_graph_lives_the_same_life_twice() -> None:
    scenario = scenario_named(f"workflow/{SEED}/1")
    assert not carry_out(Plan(scenario)).differences(reference_of(scenario.name))


def test_a_replica_that_sees_a_step_run_before_it_sees_what_runs_does_not_run_it_again() -> None:
    """Status and child come on two watches. What was not seen was taken for deleted, and the step ran a second time."""
    script = {"image": "python:3.11-slim", "command": ["true"]}
    steps = [{"name": "s0", "script": script}, {"name": "s1", "script": script, "dependsOn": ["s0"]}]
    scenario = Scenario(
        "two-scripts", [create(WORKFLOW, "wf", {"steps": steps})], lambda *_: Course(3.0), ("workflow",), replicas=2
    )
    reference = carry_out(Plan(scenario))
    chosen = [one for one in plans(scenario, reference) if one.fault in ("crash-stale", "late", "freeze")]
    assert len(chosen) > 10
    assert not [str(one) for one in chosen if carry_out(one).differences(reference)]


def test_the_end_of_a_pod_that_is_seen_late_costs_no_output() -> None:
    """Job and pods come on two watches: the job's end was seen first, and after three seconds its step had no outputs."""
    spec = {"steps": [{"name": "s0", "jobTemplate": job_spec()}]}
    course = Course(3.0, message='{"score": 0.5}')
    scenario = Scenario("one-job", [create(WORKFLOW, "wf", spec)], lambda *_: course, ("workflow", "jobs"))
    reference = carry_out(Plan(scenario))
    assert "0.5" in str(reference.state[f"{WORKFLOW.plural}/wf"]["status"])
    late = [one for one in plans(scenario, reference) if one.fault == "late" and one.process == "workflow"]
    assert len(late) > 5
    assert not [str(one) for one in late if carry_out(one).differences(reference)]
