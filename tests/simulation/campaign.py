"""Disturb a scenario at every place there is, and compare what comes out with the undisturbed run.

The oracle: the same objects with the same states (times aside), every child created and deleted exactly as often, the same
events after deduplication, and not one effect in the ten minutes after everything has ended, though all replicas read it all again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from doubles import EFFECT_FAULTS, EffectFault, Effects
from scenarios import CHILDREN, SERVICES, Scenario
from simulated import FEED_FAULTS, FeedFault, Simulation
from virtual_time import run

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.trials import decode_block, trial_name
from gryvia_common.kube.objects import Json

TIMES = frozenset(
    {
        "startTime",
        "completionTime",
        "lastTransitionTime",
        "creationTimestamp",
        "startedAt",
        "finishedAt",
        "resourceVersion",
        "observedGeneration",
    }
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One disturbance. `process` empty: at an effect; otherwise at a delivery to that process."""

    scenario: Scenario
    fault: EffectFault | FeedFault | None = None
    at: int = 0
    process: str = ""

    def __str__(self) -> str:
        where = f"delivery {self.at} to {self.process}" if self.process else f"effect {self.at}"
        return f"{self.scenario.name}: {self.fault} at {where}" if self.fault else self.scenario.name


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run is judged by, and (`effects`, `deliveries`) how many places there are to disturb it."""

    state: Json
    created: Counter[str]
    deleted: Counter[str]
    events: frozenset[str]
    late_effects: tuple[str, ...]
    effects: int
    deliveries: dict[str, int]

    def differences(self, reference: Outcome, *, strict: bool = True) -> list[str]:
        found = list(_differences("", self.state, reference.state))
        if self.late_effects:
            found.append(f"not quiet: {self.late_effects}")
        if not strict:
            return found
        for word in ("created", "deleted"):
            mine, theirs = getattr(self, word), getattr(reference, word)
            if mine != theirs:
                found.append(f"{word} besides: {dict(mine - theirs)}, not {word}: {dict(theirs - mine)}")
        if self.events != reference.events:
            more, less = sorted(self.events - reference.events), sorted(reference.events - self.events)
            found.append(f"events besides: {more}, missing: {less}")
        return found


def _differences(path: str, is_: Any, should: Any) -> Iterator[str]:
    if isinstance(is_, dict) and isinstance(should, dict):
        for key in sorted(is_.keys() | should.keys()):
            yield from _differences(f"{path}/{key}", is_.get(key), should.get(key))
    elif is_ != should:
        yield f"{path} is {str(is_)[:200]}, not {str(should)[:200]}"


def carry_out(plan: Plan) -> Outcome:
    return run(_live(plan))


async def _live(plan: Plan) -> Outcome:
    scenario = plan.scenario
    effects = Effects({plan.at: plan.fault} if plan.fault in EFFECT_FAULTS and not plan.process else {})  # type: ignore[dict-item]
    services = {name: SERVICES[name] for name in scenario.services}
    sim = Simulation(scenario.courses, services, effects, replicas=scenario.replicas)
    if plan.process:
        sim.processes[plan.process].faults[plan.at] = plan.fault  # type: ignore[assignment]
    await sim.live(scenario.moves, scenario.until)
    return judged(sim, scenario.until)


def judged(sim: Simulation, until: float) -> Outcome:
    """`until`: from this second on there should be silence."""
    effects = sim.effects
    created: Counter[str] = Counter()
    deleted: Counter[str] = Counter()
    for change in sim.cluster.log:
        if change.plural in CHILDREN:
            created[f"{change.plural}/{change.key.name}"] += change.op == "created"
            deleted[f"{change.plural}/{change.key.name}"] += change.op == "deleted"
    state = {
        f"{plural}/{name}": scrubbed(obj)
        for (plural, _, name), obj in sim.cluster.objects.items()
        if plural != "events"
    }
    _join_history(state)
    for obj in state.values():
        if _phase(obj) == "Failed" and obj["kind"] == AI_JOB.name:
            # Which of its pods was the last to fail may not be seen yet when the Job is seen to have failed.
            obj["status"]["message"] = re.sub(r"pod \S+", "pod", obj["status"]["message"])
    return Outcome(
        state=state,
        created=+created,
        deleted=+deleted,
        events=frozenset(sim.events) - _starts_of_the_failed(state),
        late_effects=tuple(what for at, _, what in effects.log if at > until),
        effects=sim.writes_until_settled,
        deliveries={name: process.delivered for name, process in sim.processes.items()},
    )


def _starts_of_the_failed(state: Json) -> set[str]:
    """Whether a job that failed soon was ever seen running is a matter of luck."""
    failed = [obj for key, obj in state.items() if key.startswith("gryviaaijobs/") and _phase(obj) == "Failed"]
    return {f"{obj['metadata']['uid']}/job/started/jobs-{obj['metadata']['name']}-1" for obj in failed}


def _phase(obj: Json) -> str:
    return str((obj.get("status") or {}).get("phase") or "")


def _join_history(state: Json) -> None:
    """What of a study's trials is in the status and what in the archive depends on when blocks were due: only both
    together count."""
    for key in [key for key in state if key.startswith("gryviaautotuners/")]:
        study = state[key]
        status = study.setdefault("status", {})
        rows = {t["name"]: (t["phase"], t.get("metricValue"), t["parameters"]) for t in status.pop("trials", ())}
        status.pop("archivedTrials", None)
        for block in [k for k in state if k.startswith(f"configmaps/{study['metadata']['name']}-trials-")]:
            for record in decode_block(state[block].pop("data")["trials.json"]):
                rows[trial_name(study["metadata"]["name"], record.number)] = (
                    record.phase,
                    record.value,
                    dict(record.parameters),
                )
            state[block]["metadata"].pop("generation")
        study["trials"] = rows


def scrubbed(value: Any) -> Any:
    """Without times; conditions in a fixed order."""
    if isinstance(value, dict):
        return {key: scrubbed(one) for key, one in value.items() if key not in TIMES}
    if isinstance(value, list):
        items = [scrubbed(one) for one in value]
        if items and all(isinstance(one, dict) and {"type", "status"} <= one.keys() for one in items):
            return sorted(items, key=lambda one: str(one["type"]))
        return items
    return value


def plans(scenario: Scenario, reference: Outcome) -> Iterator[Plan]:
    """Every fault at every place."""
    for at in range(reference.effects):
        for fault in EFFECT_FAULTS:
            yield Plan(scenario, fault, at)
    for process, count in reference.deliveries.items():
        for at in range(count):
            for feed_fault in FEED_FAULTS:
                yield Plan(scenario, feed_fault, at, process)
