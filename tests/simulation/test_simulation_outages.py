"""Long outages and clocks that jump, in virtual time: the services say so, stay calm, and recover by themselves."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

import pytest
import structlog
from campaign import Outcome, judged
from doubles import Effects
from scenarios import SCENARIOS, SERVICES, Scenario
from simulated import Simulation
from virtual_time import run

from gryvia_common.kinds.aijob import AI_JOB

MINUTES = 600.0
STUDY = next(scenario for scenario in SCENARIOS if scenario.name == "study")


def simulation(scenario: Scenario) -> Simulation:
    return Simulation(scenario.courses, {name: SERVICES[name] for name in scenario.services}, Effects())


async def live(sim: Simulation, *moves: tuple[float, Callable[[], object]], until: float = 240.0) -> None:
    await sim.live([*STUDY.moves, *((at, lambda _, move=move: move()) for at, move in moves)], until)


@pytest.fixture(scope="module")
def reference() -> Outcome:
    async def undisturbed() -> Outcome:
        sim = simulation(STUDY)
        await live(sim)
        return judged(sim, 240.0)

    return run(undisturbed())


@pytest.mark.parametrize("at", [0.12, 0.9, 2.0, 3.85])
def test_ten_minutes_without_an_api_server(at: float, reference: Outcome) -> None:
    """Whenever it goes: /readyz names it, each service logs it twice, asks at most every few seconds, and is done soon after."""
    seen: list[dict[str, dict[str, str]]] = []
    lines: list[str] = []

    async def outage() -> None:
        sim = simulation(STUDY)

        def go() -> None:
            sim.effects.away = True

        def back() -> None:
            sim.effects.away = False

        def look() -> None:
            seen.append({name: process.health.failing() for name, process in sim.processes.items()})

        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
        with structlog.testing.capture_logs() as captured:
            await live(sim, (at, go), (at + 60, look), (at + MINUTES, back), (at + MINUTES + 10, look), until=1200.0)
        lines.extend(entry["event"] for entry in captured if entry["log_level"] in ("warning", "error"))
        assert not judged(sim, 1200.0).differences(reference)
        assert sim.effects.refused <= 2 * (MINUTES / 3.75 + 40)
        # What could not be written for ten minutes is written within the five seconds between two questions.
        late = [(when, what) for when, _, what in sim.effects.log if when > at + MINUTES]
        assert min(when for when, _ in late) < at + MINUTES + 6

    run(outage())
    during, after = seen
    said = [failing["api"] for failing in during.values() if failing]
    assert said
    assert all(text.startswith("the API server has not answered for ") for text in said)
    assert not any(after.values())
    lines = [line for line in lines if "wiped" not in line]
    assert lines.count("the API server does not answer, passes wait") == len(said)
    assert len(lines) <= 2 * len(said) + 2


@pytest.mark.parametrize("hours", [1, -1])
@pytest.mark.parametrize("at", [0.5, 2.0, 4.0])
def test_a_clock_that_jumps_an_hour(hours: int, at: float, reference: Outcome) -> None:
    async def jump() -> None:
        sim = simulation(STUDY)

        def turn() -> None:
            sim.clock.jump = timedelta(hours=hours)

        await live(sim, (at, turn))
        assert not judged(sim, 240.0).differences(reference)

    run(jump())


def test_nothing_is_asked_and_nothing_written_when_nothing_changes() -> None:
    """An hour after the end: not one request."""

    async def quiet() -> None:
        sim = simulation(STUDY)
        requests: list[float] = []
        sim.effects.reached = requests.append
        await live(sim, until=3600.0)
        settled = max(when for when, _, _ in sim.effects.log)
        assert settled < 60
        assert not [when for when in requests if when > settled + 5]
        assert {obj["status"]["phase"] for obj in sim.cluster.of(AI_JOB.resource)} == {"Succeeded"}

    run(quiet())
