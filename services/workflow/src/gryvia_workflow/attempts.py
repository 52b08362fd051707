"""One attempt of a task, as the step types see it: what they are given, what they answer, and what an end means for the task.

A failure of the user's code uses up a retry and waits as the spec says; there is no wait after the last attempt. What the
infrastructure lost (a disrupted pod, a preempted job, a child that somebody deleted) is run again at once and uses up nothing, at
most LOST_LIMIT times a task. Every new attempt has a new number and so a child of its own; the old one is kept for its logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.workflow import WORKFLOW, Approval, Step
from gryvia_common.kube.children import child_name, owned_metadata
from gryvia_common.kube.objects import Json, is_deleting, metadata, uid_of
from gryvia_common.kube.resources import GROUP, Resource
from gryvia_common.runtime.plan import Action, Apply, Delete, Patch
from gryvia_common.runtime.world import Refusal, World
from gryvia_workflow.run import Task, Workflow, child_of

LOST_LIMIT = 3
LOOK = "look"
LOOK_AGAIN = 5.0
LONGEST_WAIT = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ended. `at`: when, if somebody else says so. `final`: another attempt would change nothing."""

    how: Literal["succeeded", "failed", "lost"]
    message: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    at: str = ""
    final: bool = False
    approval: Approval | None = None
    child: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a step type wants done, and the end if there is one. `child` stands in the status as jobName;
    `made_at`: when it was made, of one that was there already."""

    end: End | None = None
    child: str = ""
    made_at: str = ""
    message: str = ""
    apply: tuple[Apply, ...] = ()
    patch: tuple[Patch, ...] = ()
    delete: tuple[Delete, ...] = ()
    actions: tuple[Action, ...] = ()
    again_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """`begun`: the status knows it as running, so what it made and is not there has vanished. `payload()` renders the block of the
    step's type; it raises Unresolved."""

    workflow: Workflow
    run: int
    step: Step
    task: Task
    world: World
    now: datetime
    begun: bool
    payload: Callable[[], Json]

    @property
    def child(self) -> str:
        return child_of(self.workflow, self.run, self.task)

    def labels(self, component: str) -> dict[str, str]:
        found = {
            "workflow": child_name(self.workflow.name),
            "step": self.step.name,
            "run": str(self.run),
            "component": component,
        }
        if self.task.index is not None:
            found["item"] = str(self.task.index)
        return {f"{GROUP}/{key}": value for key, value in found.items()}

    def metadata(self) -> Json:
        """Of a child that is owned."""
        return owned_metadata(self.workflow.raw, WORKFLOW.resource, self.child, self.labels("workflow-step"))

    def made(self, resource: Resource, manifest: Callable[[], Json]) -> Json | Progress:
        """The child of this attempt, or what is to be done when there is none."""
        found = self.world.child(resource, self.child)
        if found is not None:
            return found
        refusal = self.world.refusal(resource, self.child)
        if refusal is not None:
            return Progress(refused(refusal), child=self.child)
        if not self.begun:
            return Progress(child=self.child, apply=(Apply(resource, manifest(), create_only=True),))
        lost = End("lost", f"{resource.kind} {self.child} is gone: somebody deleted it")
        return self.unseen(resource, self.child) or Progress(lost, child=self.child)

    def unseen(self, resource: Resource, name: str) -> Progress | None:
        asked = question(self.world, resource, name)
        return Progress(child=name, actions=(asked,)) if asked is not None else None

    def remove(self, resource: Resource, child: Json) -> tuple[Delete, ...]:
        if is_deleting(child):
            return ()
        return (Delete(resource, self.workflow.namespace, self.child, uid_of(child)),)


def question(world: World, resource: Resource, name: str) -> Action | None:
    """To ask the API server for what is not seen here; None when it has said that there is none. Every type comes on a watch of
    its own, so a replica may see that a step runs before it sees what runs, and would run it a second time."""
    key = f"{LOOK}/{resource.plural}/{name}"
    answer = world.observation(key)
    if answer is not None and answer.value is False:
        return None
    return Action(LOOK, key, {"plural": resource.plural, "name": name}, LOOK_AGAIN)


def made_at(child: Json) -> str:
    """When a child was made that a crash left behind: the attempt began then."""
    return str(metadata(child).get("creationTimestamp") or "")


def refused(refusal: Refusal) -> End:
    if refusal.reason == "NameCollision":
        return End("failed", f"NameCollision: {refusal.message}")
    return End("failed", f"the API server refused {refusal.resource.kind} {refusal.name}: {refusal.message}")


def after(task: Task, step: Step, end: End, at: str) -> Task:
    """The task when the attempt has ended so. Outputs are added by who keeps them."""
    task = replace(task, ended=end.at or at, message=end.message, approval=end.approval, child=end.child or task.child)
    if end.how == "succeeded":
        return replace(task, phase="Succeeded")
    if end.how == "lost":
        if task.lost >= LOST_LIMIT:
            said = f"lost to the infrastructure {task.lost + 1} times, which is the limit; the last time: {end.message}"
            return replace(task, phase="Failed", lost=task.lost + 1, message=said)
        said = f"lost to the infrastructure, run again: {end.message}"
        return replace(task, phase="Pending", lost=task.lost + 1, attempt=task.attempt + 1, ended="", message=said)
    if end.final or task.retries >= step.retries:
        return replace(task, phase="Failed")
    return replace(task, phase="Pending", retries=task.retries + 1, attempt=task.attempt + 1)


def due_at(task: Task, step: Step) -> datetime | None:
    """When the next attempt of a task that waits may start; None: at once."""
    if not task.ended or step.retry_backoff_seconds <= 0:
        return None
    wait = float(step.retry_backoff_seconds)
    factor = step.retry_backoff_factor or 1.0
    longest = LONGEST_WAIT if step.retry_backoff_max_seconds is None else float(step.retry_backoff_max_seconds)
    for _ in range(task.retries - 1):
        wait = min(wait * factor, longest)
    return parse_timestamp(task.ended) + timedelta(seconds=min(wait, longest))


def deadline(task: Task, step: Step) -> datetime | None:
    """When the attempt is over time. `started` has whole seconds and may be up to one too early."""
    if step.timeout_seconds <= 0 or not task.started:
        return None
    return parse_timestamp(task.started) + timedelta(seconds=min(step.timeout_seconds, 10**9) + 1)
