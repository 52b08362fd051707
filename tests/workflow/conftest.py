"""A cluster in a dictionary around one workflow: it carries plans out in the runtime's order, can die between any two effects, and
lets a test play jobs, pods, people and the registry. The workflow goes through the runtime's own parsing, its status through JSON."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gryvia_common.bus.events import DomainEvent
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS, PODS, Resource
from gryvia_common.runtime.controller import Ref, Selection
from gryvia_common.runtime.differences import covers
from gryvia_common.runtime.parsing import parse_object
from gryvia_common.runtime.plan import Apply, Patch, Plan, Record
from gryvia_common.runtime.world import Children, FixedWorld, Observation, Refusal
from gryvia_workflow.attempts import LOOK
from gryvia_workflow.controller import controller
from gryvia_workflow.settings import WorkflowSettings

Id = tuple[Resource, str]
SCRIPT: Json = {"image": "python:3.11", "command": ["python", "-c", "print(1)"]}
JOB: Json = {"type": "training", "gpus": 0, "image": "python:3.11"}


class Died(Exception):
    """The service was killed in the middle of a pass."""


@dataclass
class Cluster:
    """One workflow, its children and what else there is."""

    spec: Json
    name: str = "wf"
    settings: WorkflowSettings = field(default_factory=WorkflowSettings)
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    annotations: dict[str, str] = field(default_factory=dict)
    objects: dict[Id, Json] = field(default_factory=dict)
    unseen: set[Id] = field(default_factory=set)
    """What the API server has and the service does not see yet."""
    refuse: Callable[[Resource, Json], Refusal | None] = lambda resource, manifest: None
    refusals: dict[Id, Refusal] = field(default_factory=dict)
    events: list[DomainEvent] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    observations: dict[str, Observation] = field(default_factory=dict)
    writes: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    die_before: int = -1
    """Number of the effect, counted from now, before which the service dies; below 0: it lives."""
    while_dead: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.raw: Json = {
            "apiVersion": WORKFLOW.resource.api_version,
            "kind": WORKFLOW.name,
            "metadata": {
                "name": self.name,
                "namespace": "ns",
                "uid": "uid-1",
                "generation": 1,
                "resourceVersion": "1",
                "creationTimestamp": timestamp(self.now),
                "annotations": dict(self.annotations),
            },
            "spec": copy.deepcopy(self.spec),
        }
        self.restart()

    def restart(self) -> None:
        """A new process: nothing is remembered."""
        self.controller = controller(self.settings)
        self.refusals.clear()
        self.observations.clear()

    def plan(self) -> Plan:
        everything = self.objects
        self.objects = {id: obj for id, obj in everything.items() if id not in self.unseen}
        try:
            return self._plan()
        finally:
            self.objects = everything

    def _plan(self) -> Plan:
        workflow = parse_object(WORKFLOW, self.raw)
        refs = set(self.controller.refs(workflow, lambda resource, _, name: self.objects.get((resource, name))))
        owned = {resource: self._children(resource) for resource in self.controller.children}
        others = {
            (ref.resource, ref.namespace, ref.name): found
            for ref in refs
            if isinstance(ref, Ref) and (found := self.objects.get((ref.resource, ref.name))) is not None
        }
        selected = {(one.index, one.key): self._selected(one) for one in refs if isinstance(one, Selection)}
        world = FixedWorld(owned, others, selected, dict(self.observations), dict(self.refusals))
        return self.controller.decide(workflow, world, self.now)

    def step(self) -> bool:
        """One pass; whether it changed anything."""
        plan = self.plan()
        self.last = plan
        self._reach()
        self.events.extend(plan.emit)
        changed = refused = False
        for delete in plan.delete:
            self._reach()
            assert self.objects[delete.resource, delete.name]["metadata"]["uid"] == delete.uid
            del self.objects[delete.resource, delete.name]
            self.writes["delete"] += 1
            changed = True
        for apply in plan.apply:
            self._reach()
            outcome = self._apply(apply)
            changed |= outcome != "same"
            refused |= outcome == "refused"
        if refused:
            return True
        for patch in plan.patch:
            self._reach()
            changed |= self._patch(patch)
        self.records.extend(plan.record)
        if plan.metadata is not None:
            self._reach()
            for key, value in plan.metadata["annotations"].items():
                assert value is None
                del self.raw["metadata"]["annotations"][key]
            self.writes["metadata"] += 1
            changed = True
        self._reach()
        if plan.status is not None and plan.status.wire() != self.raw.get("status"):
            self.raw = {**self.raw, "status": json.loads(json.dumps(plan.status.wire()))}
            self.writes["status"] += 1
            changed = True
        self.wanted = {action.key: action for action in plan.actions}
        self.observations = {key: one for key, one in self.observations.items() if key in self.wanted}
        return changed | self._look(plan)

    def _look(self, plan: Plan) -> bool:
        """The API server is asked at once; a new answer starts another pass."""
        asked = [action for action in plan.actions if action.name == LOOK and action.key not in self.observations]
        for action in asked:
            named = (action.arguments["plural"], action.arguments["name"])
            there = any((resource.plural, name) == named for resource, name in self.objects)
            self.observations[action.key] = Observation(self.now, there)
        return bool(asked)

    def settle(self) -> None:
        """Passes until one changes nothing, as the runtime does; a death is followed by a new process."""
        for _ in range(40):
            try:
                if not self.step():
                    return
            except Died:
                self.restart()
                self.while_dead()
        raise AssertionError("the workflow does not settle")

    def after(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.settle()

    def finish(self, name: str, outputs: Json | str | None = None, *, fail: str = "", lost: bool = False) -> None:
        """The job or the pod of this name ends."""
        if (PODS, name) in self.objects:
            self.pod(name, outputs, fail=fail, lost=lost)
        else:
            phase = "Preempted" if lost else "Failed" if fail else "Succeeded"
            if outputs is not None:
                self.job_pod(name, outputs)
            self.job(name, phase, message=fail)
        self.settle()

    def job(self, name: str, phase: str, annotations: Json | None = None, message: str = "") -> None:
        job = copy.deepcopy(self.objects[AI_JOB.resource, name])
        job["status"] = {"phase": phase, **({"message": message} if message else {})}
        if phase in ("Succeeded", "Failed"):
            job["status"]["completionTime"] = timestamp(self.now - timedelta(seconds=10))
        job["metadata"]["annotations"].update(annotations or {})
        self.objects[AI_JOB.resource, name] = job

    def job_pod(self, job: str, outputs: Json | str, index: int = 0) -> None:
        """A pod below the job; the workflow does not own it."""
        uid = self.objects[AI_JOB.resource, job]["metadata"]["uid"]
        name = f"{job}-{index}-abcde"
        meta = {
            "name": name,
            "namespace": "ns",
            "uid": f"{name}-uid",
            "labels": {"gryvia.io/job": job, "batch.kubernetes.io/job-completion-index": str(index)},
            "annotations": {"gryvia.io/owner": f"gryviaaijobs/ns/{job}/{uid}"},
        }
        message = outputs if isinstance(outputs, str) else json.dumps(outputs)
        self.objects[PODS, name] = {"metadata": meta, "status": _ended("Succeeded", 0, message)}

    def pod(
        self, name: str, outputs: Json | str | None = None, *, fail: str = "", lost: bool = False, message: str = ""
    ) -> None:
        pod = copy.deepcopy(self.objects[PODS, name])
        said = message or ("" if outputs is None else outputs if isinstance(outputs, str) else json.dumps(outputs))
        pod["status"] = _ended("Failed" if fail or lost else "Succeeded", 1 if fail or lost else 0, fail or said)
        if lost:
            pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
        self.objects[PODS, name] = pod

    def annotate(self, key: str, value: str) -> None:
        self.raw["metadata"]["annotations"][key] = value
        self.settle()

    def answer(self, step: str, decision: str = "Approved", by: str = "ann", **more: str) -> None:
        self.annotate(f"gryvia.io/approval-{step}", json.dumps({"decision": decision, "by": by, **more}))

    def edit(self, **changes: Any) -> None:
        """A user changes the spec."""
        meta = {**self.raw["metadata"], "generation": self.raw["metadata"]["generation"] + 1}
        self.raw = {**self.raw, "metadata": meta, "spec": {**self.raw["spec"], **changes}}
        self.settle()

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
    def steps(self) -> dict[str, Json]:
        return {step["name"]: step for step in self.status.get("stepStatuses", ())}

    @property
    def phases(self) -> dict[str, str]:
        return {name: step["phase"] for name, step in self.steps.items()}

    @property
    def running(self) -> list[str]:
        """Names of children that are at work."""
        found = [one for step in self.steps.values() for one in [step, *step.get("items", ())]]
        return [one["jobName"] for one in found if one["phase"] == "Running" and one.get("jobName")]

    def child(self, name: str) -> Json:
        return next(found for (resource, at), found in self.objects.items() if at == name and resource != CONFIG_MAPS)

    def names(self, resource: Resource) -> list[str]:
        return sorted(name for found, name in self.objects if found == resource)

    def condition(self, type: str) -> Json:
        return next((one for one in self.status.get("conditions", ()) if one["type"] == type), {})

    def happened(self, verb: str) -> list[DomainEvent]:
        """Events of a type, duplicates of one id dropped, as a consumer does."""
        return list({event.id: event for event in self.events if event.type == f"gryvia.workflow.{verb}"}.values())

    def _children(self, resource: Resource) -> Children:
        mine = f"gryviaworkflows/ns/{self.name}/uid-1"
        found = sorted(
            (name, one)
            for (type, name), one in self.objects.items()
            if type == resource and (one["metadata"].get("annotations") or {}).get("gryvia.io/owner") == mine
        )
        return Children.of(one for _, one in found)

    def _selected(self, selection: Selection) -> list[Json]:
        index = next(one for one in self.controller.indexes if one.name == selection.index)
        return [
            one
            for (resource, _), one in self.objects.items()
            if resource == index.resource and selection.key in index.keys(one)
        ]

    def _reach(self) -> None:
        if self.die_before == 0:
            self.die_before = -1
            raise Died
        self.die_before -= self.die_before > 0

    def _apply(self, apply: Apply) -> str:
        name = apply.manifest["metadata"]["name"]
        id = (apply.resource, name)
        if id in self.refusals:
            return "same"
        if id in self.objects:
            if apply.create_only or not apply.owned or covers(self.objects[id], apply.manifest):
                return "same"
        else:
            refusal = self.refuse(apply.resource, apply.manifest)
            if refusal is not None:
                self.refusals[id] = refusal
                return "refused"
            self.made[name] += 1
        meta = {"resourceVersion": "1", **apply.manifest["metadata"], "uid": f"{name}-{self.writes.total()}"}
        self.objects[id] = copy.deepcopy({**apply.manifest, "metadata": meta})
        self.writes[apply.resource.plural] += 1
        return "changed"

    def _patch(self, patch: Patch) -> bool:
        live = self.objects[patch.resource, patch.name]
        assert live["metadata"]["uid"] == patch.uid
        if covers(live, patch.body):
            return False
        self.objects[patch.resource, patch.name] = _merged(live, patch.body)
        self.writes["patch"] += 1
        return True


def _merged(live: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(live, dict):
        return copy.deepcopy(patch)
    return {**live, **{key: _merged(live.get(key), value) for key, value in patch.items()}}


def _ended(phase: str, code: int, message: str) -> Json:
    state = {
        "terminated": {"exitCode": code, "reason": "Completed" if not code else "Error", "message": message[:4096]}
    }
    return {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]}


@pytest.fixture
def workflow() -> Callable[..., Cluster]:
    """A workflow of these steps, settled once. A step without a payload is a script; `fields` are those of the spec."""

    def make(
        *steps: Json,
        settings: WorkflowSettings | None = None,
        annotations: Json | None = None,
        name: str = "wf",
        **fields: Any,
    ) -> Cluster:
        payloads = ("jobTemplate", "script", "webhook", "register", "registry", "type", "approvers")
        whole = [step if any(key in step for key in payloads) else {**step, "script": SCRIPT} for step in steps]
        cluster = Cluster(
            {"steps": whole, **fields},
            name=name,
            settings=settings or WorkflowSettings(),
            annotations=annotations or {},
        )
        cluster.settle()
        return cluster

    return make
