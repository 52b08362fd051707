"""Whatever goes wrong once, anywhere: the same end, no child made or deleted twice, no event twice, and silence afterwards.

A few plans of each scenario in every run of the tests; with GRYVIA_FAULTS set (`make test-faults`) several thousand. A plan
that fails is named in full, and can be carried out alone: `carry_out(Plan(scenario, fault, at, process))`.
"""

from __future__ import annotations

import os
import random
from concurrent.futures import ProcessPoolExecutor

import pytest
from campaign import Plan, carry_out, plans
from scenarios import SCENARIOS, Scenario
from workers import judge_all, reference_of, scenario_named

SEED = int(os.environ.get("GRYVIA_FAULTS_SEED") or 20260301)
MANY = bool(os.environ.get("GRYVIA_FAULTS"))
SHARE = 240 if MANY else 8


@pytest.mark.timeout(900)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_one_fault_anywhere_changes_nothing(
    scenario: Scenario, pool: ProcessPoolExecutor | None, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = reference_of(scenario.name)
    assert not reference.late_effects
    # Its statuses are large on purpose: a plan of it costs ten times as much.
    share = SHARE // 6 + 1 if scenario.name == "archive" else SHARE
    everything = list(plans(scenario, reference))
    chosen = random.Random(f"{SEED}/{scenario.name}").sample(everything, min(share, len(everything)))
    verdicts = list(judge_all(pool, chosen))
    if MANY:
        seconds = sum(verdict.seconds for verdict in verdicts)
        with capsys.disabled():
            print(f"{scenario.name}: {len(chosen)} of {len(everything)} plans, seed {SEED}, {seconds:.1f} s of CPU")
    assert not {verdict.plan: verdict.differences for verdict in verdicts if verdict.differences}


def test_the_same_plan_lives_the_same_life_twice() -> None:
    plan = Plan(scenario_named("study"), "crash-after", 7)
    first, second = carry_out(plan), carry_out(plan)
    assert not first.differences(second)
    assert (first.effects, first.deliveries) == (second.effects, second.deliveries)
