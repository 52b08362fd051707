"""What the campaign has found, each as the class it is: the places are all tried, not only the one that failed."""

from __future__ import annotations

import pytest
from campaign import Plan, carry_out, plans
from scenarios import SCENARIOS, Scenario


def named(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def failures(scenario: Scenario, *faults: str) -> list[str]:
    reference = carry_out(Plan(scenario))
    chosen = [plan for plan in plans(scenario, reference) if plan.fault in faults]
    assert chosen
    return [str(plan) for plan in chosen if carry_out(plan).differences(reference)]


def test_a_view_of_pods_that_is_behind_costs_no_metric() -> None:
    """Job and pods come on two watches. A Job that was seen to end before its pods ended without their last report."""
    assert not failures(named("job"), "late", "drop")


def test_no_event_is_told_twice_when_the_spec_is_edited_between_two_tries() -> None:
    """An id that holds the generation made a second event of a start that was told before the edit was seen."""
    assert not failures(named("edited"), "crash-stale", "crash-before", "crash-after")


@pytest.mark.parametrize("fault", ["crash-stale", "late"])
def test_a_replica_that_is_behind_deletes_nothing_that_has_ended(fault: str) -> None:
    """The other replica has written Succeeded, the Job's end is not here yet: a Job that looked as if it ran on was
    deleted, with its logs. Leases are no safety: here both replicas hold everything."""
    scenario = named("two-masters")
    reference = carry_out(Plan(scenario))
    ends = [plan for plan in plans(scenario, reference) if plan.fault == fault and plan.process.startswith("jobs")]
    assert not [str(plan) for plan in ends[::9] if carry_out(plan).differences(reference)]


def test_children_that_go_before_their_owner_are_not_made_again() -> None:
    """The trial was deleted, and the garbage collector took its Job; the Job's end came first and the Job was made anew."""
    scenario = named("goal")
    reference = carry_out(Plan(scenario))
    count = reference.deliveries["jobs"]
    late = [Plan(scenario, "late", at, "jobs") for at in range(count - 14, count)]
    assert not [str(plan) for plan in late if carry_out(plan).differences(reference)]
