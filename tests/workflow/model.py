"""The rules of a run in fifty lines, written from the contract and not from the engine: how every step must end, whatever the order of
things. A step fails `fails` times before it would succeed; `checks` are the clauses of its condition."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass
class Plan:
    name: str
    depends: list[str]
    fails: list[int] = field(default_factory=lambda: [0])
    looped: bool = False
    retries: int = 0
    checks: list[tuple[str, str, str]] = field(default_factory=list)
    last: bool = False


def random_plans(chance: random.Random, size: int) -> list[Plan]:
    plans: list[Plan] = []
    for number in range(size):
        last = chance.random() < 0.1
        before = [plan.name for plan in plans if last or not plan.last]
        depends = chance.sample(before, min(len(before), chance.choice([0, 1, 1, 2, 3])))
        plan = Plan(f"s{number}", depends, retries=chance.choice([0, 0, 1, 2]), last=last)
        plan.looped = chance.random() < 0.15
        plan.fails = [chance.choice([0, 0, 0, 1, 2]) for _ in range(chance.randint(0, 3) if plan.looped else 1)]
        if depends and chance.random() < 0.4:
            phases = ["Succeeded", "Failed", "Skipped"]
            plan.checks = [(one, chance.choice(["==", "!="]), chance.choice(phases)) for one in depends]
        plans.append(plan)
    return plans


def ends(plans: list[Plan]) -> dict[str, str]:
    """The phase that every step must end in."""
    known: dict[str, str] = {}

    def end(plan: Plan) -> str:
        phases = {name: known[name] for name in plan.depends}
        if plan.checks:
            if not all((phases[name] == phase) == (sign == "==") for name, sign, phase in plan.checks):
                return "Skipped"
        elif not plan.last and any(phase != "Succeeded" for phase in phases.values()):
            return "Skipped"
        return "Failed" if any(fails > plan.retries for fails in plan.fails) else "Succeeded"

    for plan in [*(one for one in plans if not one.last), *(one for one in plans if one.last)]:
        known[plan.name] = end(plan)
    return known
