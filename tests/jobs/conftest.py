"""A cluster small enough to hold in one's head: one AIJob, its children, a Job controller, pods with logs, virtual time.

It carries plans out in the runtime's order and can stop after any effect, as a crash would.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gryvia_common.bus.events import DomainEvent
from gryvia_common.errors import Gone, GryviaError, Terminal
from gryvia_common.kinds.aijob import AI_JOB, GryviaAIJobStatus
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kube.children import is_controlled_by, owner_of
from gryvia_common.kube.objects import Json, metadata, uid_of
from gryvia_common.kube.resources import JOBS, PODS, PVCS, SERVICES, STATEFUL_SETS, Resource
from gryvia_common.progress.log import read_log
from gryvia_common.runtime.differences import merge_difference
from gryvia_common.runtime.parsing import parse_object, status_keys
from gryvia_common.runtime.plan import Action, Plan
from gryvia_common.runtime.world import FixedWorld, Observation, Refusal
from gryvia_jobs.decide import decide, invalid

BEGIN = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def merge(target: Json, patch: Json) -> Json:
    """JSON merge patch."""
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(merged.get(key) or {}, value)
        else:
            merged[key] = value
    return merged


@dataclass
class Log:
    """A pod's log as the API gives it."""

    lines: list[tuple[datetime, str]] = field(default_factory=list)
    error: GryviaError | None = None
    requests: int = 0
    sent: int = 0

    def read(self, since_time: str, tail_lines: int | None, limit_bytes: int | None) -> bytes:
        self.requests += 1
        if self.error is not None:
            raise self.error
        since = (
            datetime.fromisoformat(since_time.replace("Z", "+00:00"))
            if since_time
            else datetime.min.replace(tzinfo=UTC)
        )
        rows = [
            f"{at.strftime('%Y-%m-%dT%H:%M:%S')}.{at.microsecond * 1000:09d}".rstrip("0").rstrip(".") + f"Z {text}\n"
            for at, text in self.lines
            if at >= since
        ]
        data = "".join(rows[-tail_lines:] if tail_lines else rows).encode()
        data = data[:limit_bytes]
        self.sent += len(data)
        return data


@dataclass
class LogApi:
    """The part of the client that reads logs."""

    of: dict[str, Log]

    async def logs(self, namespace: str, pod: str, **options: Any) -> bytes:
        if pod not in self.of:
            raise Gone(f"pod {pod} is not there")
        return self.of[pod].read(options["since_time"], options["tail_lines"], options["limit_bytes"])


@dataclass
class Context:
    kube: Any
    clock: Any
    raw: Json
    previous: object


class Cluster:
    """`job`: the AIJob. `children[resource][name]`. `writes`: API writes of the service, by what they were."""

    def __init__(self, spec: Json, *, name: str = "train", kueue: bool = False, **meta: Any) -> None:
        self.now = BEGIN
        self.kueue = kueue
        self.job: Json = {
            "apiVersion": "gryvia.io/v1alpha1",
            "kind": "GryviaAIJob",
            "metadata": {
                "name": name,
                "namespace": "team-a",
                "uid": "uid-job",
                "generation": 1,
                "creationTimestamp": timestamp(BEGIN),
                **meta,
            },
            "spec": {"type": "training", "gpus": 0, "image": "python:3.11-slim", **spec},
        }
        self.children: dict[Resource, dict[str, Json]] = {r: {} for r in (JOBS, STATEFUL_SETS, SERVICES, PVCS, PODS)}
        self.logs: dict[str, Log] = {}
        self.observations: dict[str, Observation] = {}
        self.refusals: dict[tuple[Resource, str], Refusal] = {}
        self.refuse: Callable[[Resource, Json], Refusal | None] = lambda resource, manifest: None
        self.writes: list[str] = []
        self.events: list[DomainEvent] = []
        self.records: list[str] = []
        self.phases: list[str] = []
        self.wanted: tuple[Action, ...] = ()
        self._uids = itertools.count(1)

    # What a person looks at.

    @property
    def status(self) -> Json:
        return self.job.get("status") or {}

    @property
    def phase(self) -> str:
        return str(self.status.get("phase") or "")

    def condition(self, type: str) -> Json:
        return next((c for c in self.status.get("conditions") or () if c["type"] == type), {})

    @property
    def workload(self) -> Json:
        found = [*self.children[JOBS].values(), *self.children[STATEFUL_SETS].values()]
        assert len(found) == 1, [w["metadata"]["name"] for w in found]
        return found[0]

    def pods(self) -> list[Json]:
        return sorted(self.children[PODS].values(), key=lambda pod: str(metadata(pod)["name"]))

    # The service.

    def world(self) -> FixedWorld:
        owned = {
            resource: [copy.deepcopy(o) for _, o in sorted(objects.items()) if self._ours(o)]
            for resource, objects in self.children.items()
        }
        return FixedWorld(owned=owned, observations=dict(self.observations), refusals=dict(self.refusals))

    def _ours(self, obj: Json) -> bool:
        owner = owner_of(obj)
        return owner is not None and owner.uid == uid_of(self.job)

    def plan(self) -> Plan:
        try:
            parsed = parse_object(AI_JOB, copy.deepcopy(self.job))
        except Terminal as error:
            return invalid(copy.deepcopy(self.job), str(error), self.now)
        return decide(self.kueue, parsed, self.world(), self.now)

    def step(self, crash_after: int | None = None) -> bool:
        """One pass; whether it changed anything. `crash_after`: only so many effects are carried out."""
        plan = self.plan()
        budget = itertools.count()

        def alive() -> bool:
            return crash_after is None or next(budget) < crash_after

        changed = False
        for event in plan.emit:
            if alive() and event.id not in {e.id for e in self.events}:
                self.events.append(event)
        for delete in plan.delete:
            found = self.children[delete.resource].get(delete.name)
            if found is not None and uid_of(found) == delete.uid and alive():
                self.remove(delete.resource, delete.name)
                self.writes.append(f"delete {delete.resource.kind}")
                changed = True
        refused = False
        for apply in plan.apply:
            name = apply.manifest["metadata"]["name"]
            live = self.children[apply.resource].get(name)
            if (apply.resource, name) in self.refusals or (live is not None and apply.create_only and self._mine(live)):
                continue
            refusal = self.refuse(apply.resource, apply.manifest)
            if live is not None and not self._mine(live):
                refusal = Refusal(apply.resource, name, "NameCollision", f"{apply.resource.kind} {name} exists already")
            if refusal is not None:
                self.refusals[apply.resource, name] = refusal
                refused = changed = True
            elif live is None and alive():
                self.children[apply.resource][name] = copy.deepcopy(apply.manifest)
                self.children[apply.resource][name]["metadata"]["uid"] = f"uid-{next(self._uids)}"
                self.writes.append(f"create {apply.resource.kind}")
                changed = True
            elif live is not None and (merged := merge(live, apply.manifest)) != live and alive():
                self.children[apply.resource][name] = merged
                self.writes.append(f"apply {apply.resource.kind}")
                changed = True
        if refused:
            return True
        if plan.record and alive():
            self.records += [record.reason for record in plan.record]
        if plan.status is not None:
            keys = status_keys(AI_JOB)
            difference = merge_difference(self.status, plan.status.wire(), removable=keys)
            if difference and alive():
                GryviaAIJobStatus.model_validate(merge(self.status, difference))
                self.job["status"] = merge(self.status, difference)
                self.writes.append("status")
                self.phases.append(self.phase)
                changed = True
        self.wanted = plan.actions
        named = {action.key for action in plan.actions}
        self.observations = {key: value for key, value in self.observations.items() if key in named}
        return changed

    def _mine(self, obj: Json) -> bool:
        return is_controlled_by(obj, self.job)

    def act(self) -> bool:
        """Runs the actions the last plan asked for, as if all of them were due; whether there were any."""
        for action in self.wanted:
            self._act(action)
        return bool(self.wanted)

    def _act(self, action: Action) -> None:
        before = self.observations.get(action.key)
        context = Context(LogApi(self.logs), None, self.job, before.value if before else None)
        value = asyncio.run(read_log(context, action.arguments))
        self.observations[action.key] = Observation(self.now, value)

    def settle(self) -> None:
        """Passes until one changes nothing, with the actions run in between once each has settled."""
        for _ in range(3):
            for _ in range(20):
                if not self.step():
                    break
            else:
                raise AssertionError(f"does not settle: {self.writes[-20:]}")
            if not self.act():
                return

    # The cluster's own moves.

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def patch(self, **status: Any) -> None:
        """Another controller, or the CLI, patches the status."""
        self.job["status"] = merge(self.status, status)

    def edit(self, **spec: Any) -> None:
        self.job["spec"] = merge(self.job["spec"], spec)
        self.job["metadata"]["generation"] += 1

    def annotate(self, **annotations: str) -> None:
        named = {f"gryvia.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.job["metadata"]["annotations"] = {**(self.job["metadata"].get("annotations") or {}), **named}

    def remove(self, resource: Resource, name: str) -> None:
        gone = self.children[resource].pop(name)
        for below in self.children.values():
            for child in [n for n, o in below.items() if is_controlled_by(o, gone)]:
                del below[child]

    def make_pods(self) -> None:
        """What the Job or StatefulSet controller does."""
        for resource in (JOBS, STATEFUL_SETS):
            for workload in self.children[resource].values():
                self._make_pods(resource, workload)

    def _make_pods(self, resource: Resource, workload: Json) -> None:
        spec = workload["spec"]
        if spec.get("suspend") or workload.get("status", {}).get("conditions"):
            return
        for index in range(spec["parallelism" if resource == JOBS else "replicas"]):
            mine = [p for p in self.children[PODS].values() if is_controlled_by(p, workload) and p["index"] == index]
            if any(p["status"]["phase"] != "Failed" for p in mine):
                continue
            number = next(self._uids)
            suffix = f"-{number:05d}" if resource == JOBS else ""
            name = f"{workload['metadata']['name']}-{index}{suffix}"
            template = copy.deepcopy(spec["template"])
            meta = template["metadata"]
            meta["labels"]["batch.kubernetes.io/job-completion-index"] = str(index)
            meta.update(
                name=name,
                uid=f"uid-pod-{number}",
                namespace="team-a",
                creationTimestamp=timestamp(self.now),
                ownerReferences=[{"controller": True, "uid": uid_of(workload), "kind": resource.kind, "name": "w"}],
            )
            self.children[PODS][name] = {
                "metadata": meta,
                "spec": template["spec"],
                "index": index,
                "status": {"phase": "Pending", "conditions": []},
            }
            self.logs[name] = Log()

    def start(self, pod: Json, *, node: str = "node-1") -> None:
        pod["spec"]["nodeName"] = node
        pod["status"] = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
            "containerStatuses": [
                {
                    "name": "main",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": timestamp(self.now)}},
                }
            ],
        }

    def end(self, pod: Json, *, code: int = 0, message: str = "", disrupted: bool = False, reason: str = "") -> None:
        """A pod ends, and the Job controller draws its conclusions."""
        state = (pod["status"].get("containerStatuses") or [{}])[0].get("state", {})
        terminated = {
            "exitCode": code,
            "reason": reason or ("Completed" if code == 0 else "Error"),
            "message": message,
            "startedAt": (state.get("running") or {}).get("startedAt") or timestamp(self.now),
            "finishedAt": timestamp(self.now),
        }
        pod["status"] = {
            "phase": "Succeeded" if code == 0 else "Failed",
            "conditions": [{"type": "DisruptionTarget", "status": "True"}] if disrupted else [],
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": {"terminated": terminated}}],
        }
        self._conclude()

    def _conclude(self) -> None:
        for job in self.children[JOBS].values():
            mine = [p for p in self.children[PODS].values() if is_controlled_by(p, job)]
            done = {p["index"] for p in mine if p["status"]["phase"] == "Succeeded"}
            failed = [
                p
                for p in mine
                if p["status"]["phase"] == "Failed"
                and not any(c["type"] == "DisruptionTarget" for c in p["status"]["conditions"])
            ]
            status: Json = {
                "succeeded": len(done),
                "failed": len(failed),
                "active": len(mine) - len(done) - len(failed),
            }
            if len(failed) > job["spec"]["backoffLimit"]:
                condition = {"type": "Failed", "reason": "BackoffLimitExceeded", "message": "Job has reached the limit"}
            elif len(done) == job["spec"]["completions"]:
                condition = {"type": "Complete", "reason": "CompletionsReached"}
                status["completionTime"] = timestamp(self.now)
            else:
                job["status"] = status
                continue
            status["conditions"] = [{**condition, "status": "True", "lastTransitionTime": timestamp(self.now)}]
            job["status"] = status

    def say(self, pod: Json, *lines: str) -> None:
        """The pod writes to its log, a line a millisecond."""
        for number, line in enumerate(lines):
            self.logs[metadata(pod)["name"]].lines.append((self.now + timedelta(milliseconds=number), line))


@pytest.fixture(scope="session")
def cluster() -> type[Cluster]:
    return Cluster
