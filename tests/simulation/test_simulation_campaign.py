"""Whatever goes wrong once, anywhere: the same end, no child made or deleted twice, no event twice, and silence afterwards.

A few plans of each scenario in every run of the tests; with GRYVIA_FAULTS set (`make test-faults`) several thousand. A plan
that fails is named in full, and can be carried out alone: `carry_out(Plan(scenario, fault, at, process))`.
"""

from __future__ import annotations

import os
import random
import time

import pytest
from campaign import Plan, carry_out, plans
from scenarios import SCENARIOS, Scenario

SEED = int(os.environ.get("GRYVIA_FAULTS_SEED") or 20260301)
MANY = bool(os.environ.get("GRYVIA_FAULTS"))
SHARE = 300 if MANY else 8


@pytest.mark.timeout(900)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_one_fault_anywhere_changes_nothing(scenario: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    reference = carry_out(Plan(scenario))
    assert not reference.late_effects
    # Its statuses are large on purpose: a plan of it costs ten times as much.
    share = SHARE // 6 + 1 if scenario.name == "archive" else SHARE
    everything = list(plans(scenario, reference))
    chosen = random.Random(f"{SEED}/{scenario.name}").sample(everything, min(share, len(everything)))
    started = time.perf_counter()
    failures = {}
    for plan in chosen:
        found = carry_out(plan).differences(reference, strict=scenario.strict)
        if found:
            failures[str(plan)] = found
    with capsys.disabled():
        if MANY:
            seconds = time.perf_counter() - started
            print(f"{scenario.name}: {len(chosen)} of {len(everything)} plans, seed {SEED}, {seconds:.1f} s")
    assert not failures


def test_the_same_plan_lives_the_same_life_twice() -> None:
    plan = Plan(next(s for s in SCENARIOS if s.name == "study"), "crash-after", 7)
    first, second = carry_out(plan), carry_out(plan)
    assert not first.differences(second)
    assert (first.effects, first.deliveries) == (second.effects, second.deliveries)
