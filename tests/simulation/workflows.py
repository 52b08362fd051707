"""Random graphs of steps, as scenarios of the campaign: jobs, scripts and register steps with dependencies, conditions, retries, loops
and steps that always run. How each attempt ends follows from its name, so no delay changes how a run ends."""

from __future__ import annotations

import json
import random
import re
from itertools import count

from node import Course
from scenarios import Scenario, create, job_spec

from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.objects import Json

NAME = "wf"
ATTEMPT = re.compile(rf"{NAME}-(s\d+)(?:-i(\d+))?(?:-r(\d+))?$")
"""Of a child: step, item and attempt."""


def random_workflow(seed: str) -> Scenario:
    """`workflow/<anything>`, also the scenario's name."""
    chance = random.Random(seed)
    steps: list[Json] = []
    fails: dict[tuple[str, int], int] = {}
    for number in range(chance.randint(2, 6)):
        steps.append(_random_step(chance, f"s{number}", steps, fails))
    length = {step["name"]: chance.choice([0.3, 1.0, 3.0]) for step in steps}

    def course(child: str, index: int, attempt: int) -> Course:
        found = ATTEMPT.match(child)
        assert found, child
        step, item, tried = found[1], int(found[2] or 0), int(found[3] or 0)
        failed = tried < fails[step, item]
        message = "" if failed else json.dumps({"score": f"{item}.{tried}"})
        return Course(length[step], 1 if failed else 0, message=message)

    services = ("workflow", "jobs") if any("jobTemplate" in step for step in steps) else ("workflow",)
    return Scenario(
        seed,
        [create(WORKFLOW, NAME, {"steps": steps})],
        course,
        services,
        replicas=chance.choice([1, 1, 2]),
        until=400.0,
    )


def _random_step(chance: random.Random, name: str, before: list[Json], fails: dict[tuple[str, int], int]) -> Json:
    names = [step["name"] for step in before if not step.get("finally")]
    depends = chance.sample(names, min(len(names), chance.choice([0, 1, 1, 2])))
    step: Json = {"name": name, **({"dependsOn": depends} if depends else {})}
    kind = chance.choice(["job", "script", "script", "register"])
    if kind == "register":
        step["register"] = {"modelName": "digits", "version": name, "artifacts": {"pvcName": "models"}}
        return step
    if depends and chance.random() < 0.4:
        phase = chance.choice(["Succeeded", "Failed", "Skipped"])
        step["condition"] = f"steps.{depends[0]}.status {chance.choice(['==', '!='])} '{phase}'"
    items = chance.choice([0, 0, 0, 2, 3])
    if items:
        step["withItems"] = [str(number) for number in range(items)]
    step["retries"] = chance.choice([0, 1, 2])
    if chance.random() < 0.3:
        step["retryBackoffSeconds"] = 5
    if chance.random() < 0.15:
        step["finally"] = True
    numbers = count()
    for _ in range(max(items, 1)):
        fails[name, next(numbers)] = chance.choice([0, 0, 0, 1, 2])
    if kind == "job":
        step["jobTemplate"] = {**job_spec(), "retryLimit": 0}
    else:
        step["script"] = {
            "image": "python:3.11-slim",
            "command": ["python", "-c", "print('{{item}}')" if items else "1"],
        }
    return step
