"""One pass over a run: every attempt that runs is looked at once, then whatever has become possible begins, until nothing more does.

So a step starts in the same pass that sees its last dependency end, and several transitions are one write. The order of effects
does the rest: children are made before the status knows them (a pass repeated after a crash finds and adopts them by name), and
what is deleted was judged by something that is still so in the next pass (a deadline, the child's own state).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.workflow import BLOCKS, STEP_ENDED, Step, StepType
from gryvia_common.kube.objects import Json, is_deleting, uid_of
from gryvia_common.kube.resources import CONFIG_MAPS, PODS, Resource
from gryvia_common.runtime.plan import Action, Apply, Delete, Patch
from gryvia_common.runtime.world import World
from gryvia_pipelines.conditions import NoAnswer
from gryvia_pipelines.validation import ITEMS_LIMIT, Checked
from gryvia_workflow.attempts import Attempt, End, Progress, after, deadline, due_at, question
from gryvia_workflow.items import BadItems, items_of
from gryvia_workflow.outputs import collected, kept
from gryvia_workflow.run import LONGEST_ITEM_MESSAGE, LONGEST_MESSAGE, Task, Workflow, child_of, cut
from gryvia_workflow.templating import Scope, Unresolved, render

Advance = Callable[[Attempt], Progress]
MADE: Mapping[StepType, Resource] = {"job": AI_JOB.resource, "script": PODS}


@dataclass(slots=True)
class Effects:
    """What a pass wants done besides its status."""

    apply: list[Apply] = field(default_factory=list)
    delete: list[Delete] = field(default_factory=list)
    patch: list[Patch] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    wakes: list[datetime] = field(default_factory=list)


class NotSeen(Exception):
    """Outputs stand in a ConfigMap that this replica does not see yet: who needs them waits."""


class Engine:
    """The state of one pass: `tasks` by step, as they become; `moves`: each change of a phase or an attempt, before and after.
    `cancelled`: the words for it when the run is; `stopped`: some step was, because of that."""

    def __init__(
        self,
        workflow: Workflow,
        run: int,
        tasks: Mapping[str, Task],
        checked: Checked,
        types: Mapping[StepType, Advance],
        slots: int,
        world: World,
        now: datetime,
        cancelled: str = "",
    ) -> None:
        self.tasks = dict(tasks)
        self.stopped = False
        self.effects = Effects()
        self.moves: list[tuple[Task, Task]] = []
        self._workflow, self._run, self._checked = workflow, run, checked
        self._types, self._slots, self._world, self._now = types, slots, world, now
        self._at, self._cancelled = timestamp(now), cancelled
        self._steps = {step.name: step for step in workflow.spec.steps}
        self._written = {step["name"]: step for step in workflow.raw["spec"]["steps"]}
        self._phases: dict[str, str] = {name: task.phase for name, task in self.tasks.items()}
        self._busy = sum(self._takes_slot(one) for task in self.tasks.values() for one in self._parts(task))
        self._values: dict[str, list[Any]] = {}
        self._whole: dict[tuple[str, int | None], Mapping[str, str]] = {}

    def go(self) -> None:
        for name in self._checked.graph.order:
            task = self.tasks[name]
            for one in self._parts(task):
                if one.phase == "Running":
                    self._advance(self._steps[name], one, begun=True)
            self._stop(name)
            self._roll_up(name)
        for name in self._checked.graph.order:
            self._begin(name, left_behind=True)
        before: dict[str, Task] = {}
        while before != self.tasks:
            before = dict(self.tasks)
            for name in self._checked.graph.order:
                self._begin(name)
                self._roll_up(name)

    def _stop(self, name: str) -> None:
        """What a cancelled run has not begun is skipped, what waited for another attempt has failed."""
        if not self._to_stop(name):
            return
        for one in self._parts(self.tasks[name]):
            if not one.over:
                self.stopped = True
                begun = one.ended or one.index is not None
                self._put(replace(one, phase="Failed" if begun else "Skipped", ended=self._at, message=self._cancelled))

    def _to_stop(self, name: str) -> bool:
        return bool(self._cancelled) and not self._checked.graph.nodes[name].last

    def outputs_of(self, task: Task) -> Mapping[str, str]:
        """The whole outputs of a task that succeeded. Raises Unresolved and NotSeen."""
        key = task.step, task.index
        if key not in self._whole:
            self._whole[key] = self._read_outputs(task)
        return self._whole[key]

    def _read_outputs(self, task: Task) -> Mapping[str, str]:
        if task.items:
            return collected(self.outputs_of(item) for item in task.items)
        if task.outputs_in:
            config_map = self._world.child(CONFIG_MAPS, task.outputs_in)
            if config_map is None:
                asked = question(self._world, CONFIG_MAPS, task.outputs_in)
                if asked is not None:
                    self.effects.actions.append(asked)
                    raise NotSeen
                raise Unresolved(
                    f"the outputs of step {task.title} stood in ConfigMap {task.outputs_in}, which is gone"
                )
            return dict(config_map.get("data") or {})
        return task.outputs

    def _begin(self, name: str, *, left_behind: bool = False) -> None:
        """Whatever of the step may start now. `left_behind`: only what runs already, though the status does not know it since the
        service died in between; it has its slot."""
        step, task = self._steps[name], self.tasks[name]
        if task.over or (task.phase == "Running" and not task.items):
            return
        if task.phase == "Pending" and not task.ended and not self._admitted(step, task):
            return
        for one in self._parts(self.tasks[name]):
            if one.phase == "Pending" and (not left_behind or self._is_there(name, one)):
                if not left_behind and self._checked.types[name] != "approval" and self._busy >= self._slots:
                    return
                self._start(step, one)

    def _is_there(self, name: str, task: Task) -> bool:
        resource = MADE.get(self._checked.types[name])
        return (
            resource is not None and self._world.child(resource, child_of(self._workflow, self._run, task)) is not None
        )

    def _admitted(self, step: Step, task: Task) -> bool:
        """Whether the step may run; if not it is skipped, has failed or still waits. Its items are laid out here."""
        ready, wrong = self._checked.graph.readiness(step.name, self._phases)
        if ready == "wait":
            return False
        if ready == "skip":
            self._put(replace(task, phase="Skipped", ended=self._at, message=f"step {wrong} is {self._phases[wrong]}"))
            return False
        try:
            if ready == "ask" and not self._holds(step):
                self._put(replace(task, phase="Skipped", ended=self._at, message="the condition is false"))
                return False
            if step.with_items is None:
                return True
            return self._laid_out(step, task)
        except NotSeen:
            return False
        except (NoAnswer, Unresolved) as error:
            said = f'condition "{cut(step.condition or "", 90)}": {error}'
        except BadItems as error:
            said = str(error)
        self._put(replace(task, phase="Failed", ended=self._at, message=said))
        return False

    def _laid_out(self, step: Step, task: Task) -> bool:
        values = self._items(step)
        if not values:
            self._put(replace(task, phase="Succeeded", started=self._at, ended=self._at, message="no items"))
            return False
        others = sum(len(one.items) for one in self.tasks.values())
        if others + len(values) > ITEMS_LIMIT:
            raise BadItems(
                f"withItems: {len(values)} items and {others} of other steps; a run may have {ITEMS_LIMIT} in all"
            )
        items = tuple(Task(step.name, index, attempt=task.attempt) for index in range(len(values)))
        self._put(replace(task, phase="Running", started=self._at, message="", items=items))
        return True

    def _holds(self, step: Step) -> bool:
        condition = self._checked.conditions[step.name]
        names = self._checked.graph.ancestors[step.name] if condition.everything else condition.steps
        found = {
            name: {
                "status": self.tasks[name].phase,
                "outputs": dict(self.outputs_of(self.tasks[name])) if condition.outputs else {},
            }
            for name in names
        }
        return condition.holds(found, self._workflow.spec.parameters or {})

    def _start(self, step: Step, task: Task) -> None:
        due = due_at(task, step)
        if due is not None and due > self._now:
            self.effects.wakes.append(due)
            return
        fresh = replace(task, phase="Running", started=self._at, ended="", message="", child="", approval=None)
        self._advance(step, replace(fresh, outputs={}, outputs_in=""), begun=False)

    def _advance(self, step: Step, task: Task, *, begun: bool) -> None:
        kind = self._checked.types[step.name]
        payload = partial(self._payload, step, task, BLOCKS.get(kind, ""))
        attempt = Attempt(self._workflow, self._run, step, task, self._world, self._now, begun, payload)
        try:
            progress = self._types[kind](attempt)
        except NotSeen:
            return
        except Unresolved as error:
            progress = Progress(End("failed", str(error)), child=task.child)
        except BadItems as error:
            progress = Progress(End("failed", str(error), final=True), child=task.child)
        if progress.end is None and self._to_stop(step.name):
            self.stopped = True
            progress = Progress(End("failed", self._cancelled, final=True), child=progress.child)
        self._take(progress)
        task = replace(task, child=progress.child, started=progress.made_at or task.started)
        end = progress.end or self._overtime(step, task, kind)
        if end is None:
            self._put(replace(task, message=progress.message))
            return
        ended = after(task, step, end, self._at)
        if ended.phase == "Succeeded":
            ended = self._keep(step, ended, end.outputs)
        self._put(ended)

    def _keep(self, step: Step, task: Task, values: Mapping[str, str]) -> Task:
        """With its outputs; an attempt whose outputs cannot be kept has failed."""
        outputs, where, apply = kept(self._workflow, self._run, task, values)
        refusal = self._world.refusal(CONFIG_MAPS, where) if where else None
        if refusal is not None:
            end = End("failed", f"the outputs cannot be kept in ConfigMap {where}: {refusal.message}")
            return after(replace(task, phase="Running"), step, end, self._at)
        self._whole[task.step, task.index] = values
        self.effects.apply += apply
        return replace(task, outputs=outputs, outputs_in=where)

    def _overtime(self, step: Step, task: Task, kind: StepType) -> End | None:
        until = deadline(task, step)
        if until is None:
            return None
        if until > self._now:
            self.effects.wakes.append(until)
            return None
        child = self._world.child(MADE[kind], task.child) if kind in MADE else None
        if child is not None and not is_deleting(child):
            self.effects.delete.append(Delete(MADE[kind], self._workflow.namespace, task.child, uid_of(child)))
        words = "nobody answered within" if kind == "approval" else "timed out after"
        return End("failed", f"{words} {step.timeout_seconds} s", final=kind == "approval")

    def _roll_up(self, name: str) -> None:
        """A step whose items have all ended has ended."""
        task = self.tasks[name]
        if task.phase != "Running" or not task.items or any(item.phase not in STEP_ENDED for item in task.items):
            return
        failed = [item for item in task.items if item.phase == "Failed"]
        task = replace(task, ended=max(item.ended for item in task.items))
        if failed:
            said = f"{len(failed)} of {len(task.items)} items failed; item {failed[0].index}: {failed[0].message}"
            self._put(replace(task, phase="Failed", message=said))
            return
        try:
            outputs, where, apply = kept(self._workflow, self._run, task, self.outputs_of(task))
        except NotSeen:
            return
        except Unresolved as error:
            self._put(replace(task, phase="Failed", message=str(error)))
            return
        self.effects.apply += apply
        self._put(replace(task, phase="Succeeded", outputs=outputs, outputs_in=where))

    def _payload(self, step: Step, task: Task, block: str) -> Json:
        scope = self._scope()
        if task.index is not None:
            values = self._items(step)
            if task.index >= len(values):
                raise BadItems(f"withItems: the list has only {len(values)} items now")
            scope = replace(scope, item=values[task.index], looped=True)
        found: Json = render(self._written[step.name].get(block) or {}, scope)
        return found

    def _items(self, step: Step) -> list[Any]:
        if step.name not in self._values:
            self._values[step.name] = items_of(self._written[step.name].get("withItems"), self._scope())
        return self._values[step.name]

    def _scope(self) -> Scope:
        return Scope(self._workflow, self._run, self.tasks, self.outputs_of)

    def _take(self, progress: Progress) -> None:
        self.effects.apply += progress.apply
        self.effects.delete += progress.delete
        self.effects.patch += progress.patch
        self.effects.actions += progress.actions
        if progress.again_at is not None:
            self.effects.wakes.append(progress.again_at)

    def _takes_slot(self, task: Task) -> bool:
        """A person's answer is waited for without a slot."""
        return task.phase == "Running" and not task.items and self._checked.types[task.step] != "approval"

    def _parts(self, task: Task) -> tuple[Task, ...]:
        return task.items or (task,)

    def _put(self, task: Task) -> None:
        # Cut as the status will be, so that what is made of it is the same in the next pass.
        task = replace(task, message=cut(task.message, LONGEST_MESSAGE if task.index is None else LONGEST_ITEM_MESSAGE))
        whole = self.tasks[task.step]
        was = whole if task.index is None else whole.items[task.index]
        if (was.phase, was.attempt) != (task.phase, task.attempt):
            self.moves.append((was, task))
        self._busy += self._takes_slot(task) - self._takes_slot(was)
        if task.index is None:
            self.tasks[task.step] = task
            self._phases[task.step] = task.phase
            return
        self.tasks[task.step] = replace(whole, items=(*whole.items[: task.index], task, *whole.items[task.index + 1 :]))
