"""A campaign's plans on all cores, with the CPU time they took.

A worker carries out one plan after another and collects garbage only between them: a plan leaves thousands of small cycles, and
the interpreter would look through everything that is loaded, again and again, to find them. That is a fifth of the time.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import structlog
from campaign import Outcome, Plan, carry_out
from doubles import EffectFault
from promotions import live, random_life
from scenarios import SCENARIOS, Scenario
from simulated import FeedFault
from workflows import random_workflow

CHUNK = 8
PlanId = tuple[str, EffectFault | FeedFault | None, int, str]
"""Scenario, fault, place and process: what travels to a worker."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`differences` is empty when all is well; `seconds` of CPU."""

    plan: str
    differences: Sequence[str]
    seconds: float


@cache
def scenario_named(name: str) -> Scenario:
    """One of the fixed ones, or `workflow/<seed>`."""
    if name.startswith("workflow/"):
        return random_workflow(name)
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


@cache
def reference_of(name: str) -> Outcome:
    """The undisturbed life."""
    return carry_out(Plan(scenario_named(name)))


def judge(ids: Sequence[PlanId]) -> list[Verdict]:
    found = []
    for name, fault, at, process in ids:
        scenario, reference = scenario_named(name), reference_of(name)
        plan = Plan(scenario, fault, at, process)
        began = time.process_time()
        with no_garbage_collection():
            differences = carry_out(plan).differences(reference, strict=scenario.strict)
        found.append(Verdict(str(plan), differences, time.process_time() - began))
    gc.collect()
    return found


def live_all(pool: ProcessPoolExecutor | None, seeds: Iterable[str]) -> dict[str, list[str]]:
    """Random lives of a model family; of each in which something was wrong, what."""
    names = list(seeds)
    found = pool.map(_live, names, chunksize=CHUNK) if pool else map(_live, names)
    return {name: wrong for name, wrong in zip(names, found, strict=True) if wrong}


def _live(seed: str) -> list[str]:
    with no_garbage_collection():
        return live(random_life(seed))


def judge_all(pool: ProcessPoolExecutor | None, plans: Iterable[Plan]) -> Iterator[Verdict]:
    """`pool` None: here."""
    ids: list[PlanId] = [(plan.scenario.name, plan.fault, plan.at, plan.process) for plan in plans]
    chunks = [ids[at : at + CHUNK] for at in range(0, len(ids), CHUNK)]
    for verdicts in pool.map(judge, chunks) if pool else map(judge, chunks):
        yield from verdicts


@contextmanager
def workers() -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context, initializer=_begin) as pool:
        yield pool


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _begin() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    gc.freeze()
