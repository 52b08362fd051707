"""A cluster in a dictionary: it carries plans out in the runtime's order, can die between any two steps, and lets a test play
the jobs. The tuner object goes through the runtime's own parsing, its status through JSON."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gryvia_common.bus.events import DomainEvent
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER, Trial
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.trials import history
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS, Resource
from gryvia_common.runtime.parsing import parse_object
from gryvia_common.runtime.plan import Plan, Record
from gryvia_common.runtime.world import Children, FixedWorld, Refusal
from gryvia_tuner.controller import controller
from gryvia_tuner.settings import TunerSettings

SPEC: Json = {
    "searchAlgorithm": "random",
    "parameterSpace": [
        {"name": "lr", "type": "float", "min": 1e-5, "max": 0.1, "scale": "log"},
        {"name": "layers", "type": "int", "min": 1, "max": 8},
        {"name": "act", "type": "categorical", "values": ["relu", "tanh"]},
    ],
    "objective": {"metricName": "loss", "direction": "minimize"},
    "maxTrials": 6,
    "parallelism": 2,
    "jobTemplate": {"type": "training", "gpus": 0, "image": "python:3.11", "env": [{"name": "A", "value": "1"}]},
}

LIMITS = TunerSettings(tuner_max_trials=20_000)


class Died(Exception):
    """The service was killed in the middle of a pass."""


@dataclass
class Cluster:
    """One tuner and its children."""

    spec: Json
    name: str = "study"
    uid: str = "uid-1"
    settings: TunerSettings = field(default_factory=lambda: LIMITS)
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    jobs: dict[str, Json] = field(default_factory=dict)
    config_maps: dict[str, Json] = field(default_factory=dict)
    others: dict[tuple[Resource, str, str], Json] = field(default_factory=dict)
    refuse: Callable[[Resource, Json], Refusal | None] = lambda resource, manifest: None
    refusals: dict[tuple[Resource, str], Refusal] = field(default_factory=dict)
    events: list[DomainEvent] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    writes: Counter[str] = field(default_factory=Counter)
    die_before: str = ""
    """Step at which the next pass dies: "events", "delete <n>", "apply <n>" or "status"."""

    def __post_init__(self) -> None:
        self.raw: Json = {
            "apiVersion": AUTO_TUNER.resource.api_version,
            "kind": AUTO_TUNER.name,
            "metadata": {
                "name": self.name,
                "namespace": "ns",
                "uid": self.uid,
                "generation": 1,
                "resourceVersion": "1",
                "creationTimestamp": timestamp(self.now),
            },
            "spec": copy.deepcopy(self.spec),
        }
        self.restart()

    def restart(self) -> None:
        """A new process: nothing is remembered."""
        self.controller = controller(self.settings)
        self.refusals.clear()

    def plan(self) -> Plan:
        tuner = parse_object(AUTO_TUNER, self.raw)
        world = FixedWorld(
            owned={
                AI_JOB.resource: Children.of(self.jobs[name] for name in sorted(self.jobs)),
                CONFIG_MAPS: Children.of(self.config_maps[name] for name in sorted(self.config_maps)),
            },
            others=self.others,
            refusals=dict(self.refusals),
        )
        return self.controller.decide(tuner, world, self.now)

    def step(self) -> bool:
        """One pass; whether it changed anything."""
        plan = self.plan()
        self._reach("events")
        self.events.extend(plan.emit)
        changed = refused = False
        for number, delete in enumerate(plan.delete):
            self._reach(f"delete {number}")
            assert self.jobs[delete.name]["metadata"]["uid"] == delete.uid
            del self.jobs[delete.name]
            self.writes["delete"] += 1
            changed = True
        for number, apply in enumerate(plan.apply):
            self._reach(f"apply {number}")
            outcome = self._apply(apply.resource, apply.manifest, apply.create_only)
            changed |= outcome != "same"
            refused |= outcome == "refused"
        if refused:
            return True
        self.records.extend(plan.record)
        self._reach("status")
        if plan.status is not None and plan.status.wire() != self.raw.get("status"):
            self.raw = {**self.raw, "status": plan.status.wire()}
            self.writes["status"] += 1
            changed = True
        return changed

    def settle(self) -> None:
        """Passes until one changes nothing, as the runtime does."""
        for _ in range(25):
            if not self.step():
                return
        raise AssertionError("the tuner does not settle")

    def after(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def job(
        self, name: str, phase: str, metrics: Json | None = None, annotations: Json | None = None, **status: Any
    ) -> None:
        """The job controller, or the training code, says so."""
        job = copy.deepcopy(self.jobs[name])
        before = job.setdefault("status", {})
        before.update(phase=phase, **status)
        if phase == "Running":
            before.setdefault("startTime", timestamp(self.now))
        elif phase not in ("Pending", "Queued", "Scheduling"):
            before.setdefault("completionTime", timestamp(self.now))
        if metrics is not None:
            before["metrics"] = metrics
        job["metadata"]["annotations"].update(annotations or {})
        self.jobs[name] = job

    def succeed(self, name: str, value: float) -> None:
        self.job(name, "Succeeded", {"values": {self.raw["spec"]["objective"]["metricName"]: value}})

    def run(self, objective: Callable[[Json], float], seconds: float = 10) -> None:
        """To the end: every job succeeds with the objective of its parameters."""
        self.settle()
        while self.phase == "Running":
            self.after(seconds)
            active = self.active
            assert active, "running, but nothing runs"
            for trial in active:
                self.succeed(trial.name, objective(trial.parameters))
            self.settle()

    def edit(self, **changes: Any) -> None:
        """A user changes the spec."""
        meta = {**self.raw["metadata"], "generation": self.raw["metadata"]["generation"] + 1}
        self.raw = {**self.raw, "metadata": meta, "spec": {**self.raw["spec"], **changes}}

    @property
    def status(self) -> Json:
        found: Json = self.raw.get("status") or {}
        return found

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    @property
    def message(self) -> str:
        return str(self.status.get("message", ""))

    @property
    def trials(self) -> list[Trial]:
        """The whole history, as the CLI reads it."""
        return history(self.raw, self.config_maps.values())

    @property
    def active(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.phase in ("Pending", "Running")]

    def trial(self, number: int) -> Trial:
        return next(trial for trial in self.trials if trial.name == f"{self.name}-trial-{number}")

    def condition(self, type: str) -> Json:
        return next((one for one in self.status.get("conditions", ()) if one["type"] == type), {})

    def happened(self, verb: str) -> list[str]:
        """Names in the events of this type, duplicates of one id dropped, as a consumer does."""
        return list({event.id: event.name for event in self.events if event.type == f"gryvia.{verb}"}.values())

    def _reach(self, step: str) -> None:
        if self.die_before == step:
            self.die_before = ""
            self.restart()
            raise Died(step)

    def _apply(self, resource: Resource, manifest: Json, create_only: bool) -> str:
        store = self.jobs if resource == AI_JOB.resource else self.config_maps
        name = manifest["metadata"]["name"]
        if (resource, name) in self.refusals:
            return "same"
        if name in store:
            if create_only or store[name]["data"] == manifest["data"]:
                return "same"
        else:
            refusal = self.refuse(resource, manifest)
            if refusal is not None:
                self.refusals[resource, name] = refusal
                return "refused"
        meta = {
            **manifest["metadata"],
            "uid": store.get(name, {}).get("metadata", {}).get("uid") or f"{name}-{self.writes.total()}",
        }
        store[name] = copy.deepcopy({**manifest, "metadata": meta})
        self.writes[resource.plural] += 1
        return "changed"


@pytest.fixture
def study() -> Callable[..., Cluster]:
    """A tuner of the usual spec with these fields of the spec changed (objective, ashaConfig, ...)."""

    def make(
        *, name: str = "study", uid: str = "uid-1", settings: TunerSettings | None = None, **changes: Any
    ) -> Cluster:
        chosen = settings or LIMITS
        return Cluster({**copy.deepcopy(SPEC), **changes}, name=name, uid=uid, settings=chosen)

    return make
