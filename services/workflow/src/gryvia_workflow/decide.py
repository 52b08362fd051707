"""The pass of a workflow.

    ended, nothing asked ─► rest: 0 writes
    nothing to cancel    ─► the wish is taken off
    not valid            ─► Failed; what runs is stopped
    between two runs     ─► the schedule says when, or a person; a failed run may be resumed
    in a run             ─► the engine goes as far as it can; at the end Succeeded or Failed, with a schedule Scheduled

The run is in the status alone, so any pass can be repeated. A run begins by filing the one before (history.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.workflow import Cancellation, StepType, WorkflowPhase
from gryvia_common.kube.objects import Json, is_deleting, uid_of
from gryvia_common.kube.resources import Resource
from gryvia_common.runtime.plan import Delete, Plan, Record
from gryvia_common.runtime.world import World
from gryvia_pipelines.schedule import Due, due
from gryvia_pipelines.validation import Checked
from gryvia_workflow import cancelling, events, history, rerun, resume
from gryvia_workflow.engine import MADE, Advance, Engine
from gryvia_workflow.events import Change
from gryvia_workflow.run import Task, Workflow, read_tasks
from gryvia_workflow.settings import WorkflowSettings
from gryvia_workflow.status import Run, status_of
from gryvia_workflow.steps import approval


@dataclass(frozen=True, slots=True)
class Tools:
    """`check` judges a workflow's spec (and remembers), `types` runs the types of steps."""

    settings: WorkflowSettings
    check: Callable[[Workflow], Checked]
    types: Mapping[StepType, Advance]


def decide(workflow: Workflow, world: World, now: datetime, tools: Tools) -> Plan:
    if workflow.deleting:
        return Plan()
    if rests(workflow):
        return Plan(delete=_left(workflow, workflow.status.run or 0, workflow.status.cancelled, world))
    checked = tools.check(workflow)
    run = _read(workflow)
    acknowledged = cancelling.acknowledged(workflow, run.tasks, now, valid=not checked.problems)
    if acknowledged is not None:
        return acknowledged
    ended = rerun.has_ended(workflow)
    if checked.problems:
        return rerun.changed(workflow, checked, now) if ended else _invalid(workflow, checked, run, world, now)
    if workflow.status.phase == "Running" and run.started:
        return _go_on(workflow, checked, run, world, now, tools)
    if run.outcome == "Failed" and resume.asked(workflow):
        return _go_on(workflow, checked, run, world, now, tools)
    if workflow.spec.schedule is not None:
        return _between(workflow, checked, run, world, now, tools)
    if ended and not rerun.asked(workflow):
        return rerun.changed(workflow, checked, now)
    return _begin(workflow, checked, Run(run.number + 1) if ended else Run(), world, now, tools)


def rests(workflow: Workflow) -> bool:
    """Nothing can come of a pass: it has ended for good, or what is wrong with it has been said."""
    status = workflow.status
    if status.phase not in ("Succeeded", "Failed") or status.observed_generation != workflow.generation:
        return False
    if cancelling.ANNOTATION in workflow.annotations or rerun.asked(workflow):
        return False
    if workflow.spec.schedule is not None and status.phase != "Failed":
        return False
    return not (status.start_time and status.phase == "Failed" and resume.asked(workflow))


def _read(workflow: Workflow) -> Run:
    status = workflow.status
    if not status.start_time:
        return Run(
            status.run or 0,
            resumed_by=status.resumed_by or "",
            scheduled_for=status.last_schedule_time or "",
            requested=status.run_requested or "",
        )
    return Run(
        status.run or 0,
        read_tasks(workflow),
        status.start_time,
        status.completion_time or "",
        status.last_schedule_time or "",
        status.resumed_by or "",
        status.run_requested or "",
        status.cancelled,
    )


def _between(workflow: Workflow, checked: Checked, run: Run, world: World, now: datetime, tools: Tools) -> Plan:
    """No run is in progress: one begins, or the schedule says when. One that is asked for is met by one that is due."""
    found = _due(workflow, now)
    if found.start is not None or rerun.asked(workflow):
        following = Run(run.number + 1, scheduled_for=timestamp(found.start) if found.start else "")
        return _begin(workflow, checked, following, world, now, tools, found)
    message = found.message or run.failures
    status = status_of(workflow, checked, run, "Scheduled", message, now, found.fields())
    left = _left(workflow, run.number, run.cancelled, world)
    return Plan(status=status, delete=left, metadata=_without(_answered(workflow, run)), again_at=found.next)


def _due(workflow: Workflow, now: datetime, *, running: bool = False) -> Due:
    return due(workflow.spec, workflow.status, workflow.created_at, now, running=running, edited=_edited(workflow))


def _edited(workflow: Workflow) -> bool:
    return workflow.status.observed_generation not in (None, workflow.generation)


def _begin(
    workflow: Workflow, checked: Checked, run: Run, world: World, now: datetime, tools: Tools, found: Due | None = None
) -> Plan:
    run = replace(
        run,
        tasks={step.name: Task(step.name) for step in workflow.spec.steps},
        started=timestamp(now),
        resumed_by=workflow.annotations.get(resume.ANNOTATION) or "",
        requested=workflow.annotations.get(rerun.ANNOTATION) or "",
        cancelled=cancelling.asked(workflow, now),
    )
    engine = _engine(workflow, checked, run, world, now, tools)
    if workflow.status.start_time:
        engine.effects.apply.append(history.filed(workflow))
        engine.effects.delete += history.outdated(workflow, world, run.number)
    engine.go()
    return _plan(workflow, checked, run, engine, world, now, found)


def _go_on(workflow: Workflow, checked: Checked, run: Run, world: World, now: datetime, tools: Tools) -> Plan:
    if resume.asked(workflow):
        tasks = resume.resumed(run.tasks, checked.graph, cancelled=run.cancelled is not None)
        seen = workflow.annotations[resume.ANNOTATION]
        run = replace(run, tasks=tasks, resumed_by=seen, ended="", cancelled=None)
    run = replace(run, cancelled=run.cancelled or cancelling.asked(workflow, now))
    engine = _engine(workflow, checked, run, world, now, tools)
    engine.effects.delete += _removed(workflow, checked, world)
    engine.go()
    # An edit of the schedule counts from when it is seen, also in a run: afterwards nobody would know of it.
    edited = workflow.spec.schedule is not None and _edited(workflow)
    found = _due(workflow, now, running=True) if edited else None
    return _plan(workflow, checked, run, engine, world, now, found)


def _engine(workflow: Workflow, checked: Checked, run: Run, world: World, now: datetime, tools: Tools) -> Engine:
    """Answers that counted already count no more."""
    gone = _answered(workflow, run)
    valid = {key: value for key, value in workflow.annotations.items() if key not in gone}
    slots = tools.settings.workflow_max_parallel_steps
    asking = replace(workflow, annotations=valid)
    return Engine(asking, run.number, run.tasks, checked, tools.types, slots, world, now, run.cancelled_words)


def _plan(
    workflow: Workflow, checked: Checked, run: Run, engine: Engine, world: World, now: datetime, found: Due | None
) -> Plan:
    began = workflow.status.start_time is None or run.number != (workflow.status.run or 0)
    # Cancelled in the moment in which all has ended by itself: it was not.
    cancelled = run.cancelled if engine.stopped or workflow.status.cancelled is not None else None
    run = replace(run, tasks=engine.tasks, cancelled=cancelled)
    outcome, effects = run.outcome, engine.effects
    phase: WorkflowPhase = "Running"
    if outcome:
        run = replace(run, ended=timestamp(now))
        phase = "Scheduled" if workflow.spec.schedule is not None else _final(run)
    change = Change(workflow, run.number, engine.moves, began, outcome, run.failures, run.resumed_by)
    return Plan(
        status=status_of(workflow, checked, run, phase, run.failures, now, found.fields() if found else None),
        apply=tuple(effects.apply),
        delete=tuple(dict.fromkeys((*effects.delete, *_left(workflow, run.number, cancelled, world)))),
        patch=tuple(effects.patch),
        actions=tuple(effects.actions),
        emit=tuple(events.emitted(change)),
        record=tuple(events.recorded(change)),
        metadata=_without(_answered(workflow, run)),
        again_at=min(effects.wakes, default=None),
    )


def _left(workflow: Workflow, run: int, cancelled: Cancellation | None, world: World) -> tuple[Delete, ...]:
    return tuple(cancelling.left(workflow, run, world, tuple(MADE.values()))) if cancelled is not None else ()


def _final(run: Run) -> WorkflowPhase:
    return "Failed" if run.outcome == "Failed" else "Succeeded"


def _answered(workflow: Workflow, run: Run) -> tuple[str, ...]:
    """Annotations with answers that the status has, and at the start of a run those that were for another one."""
    recorded = {status.name for status in workflow.status.step_statuses or () if status.approval is not None}
    anew = run.number != (workflow.status.run or 0)
    return tuple(
        key
        for key in workflow.annotations
        if key.startswith(approval.ANNOTATION) and (anew or key.removeprefix(approval.ANNOTATION) in recorded)
    )


def _without(keys: tuple[str, ...]) -> Json | None:
    return {"annotations": dict.fromkeys(keys)} if keys else None


def _removed(workflow: Workflow, checked: Checked, world: World) -> Iterator[Delete]:
    """Children of steps that an edit took out of the spec, or made of another type, while they ran."""
    for status in workflow.status.step_statuses or ():
        kind = checked.types.get(status.name)
        others = [resource for of, resource in MADE.items() if of != kind]
        running = [one.job_name or "" for one in [status, *(status.items or ())] if one.phase == "Running"]
        yield from _deletes(workflow, world, running, others)


def _deletes(workflow: Workflow, world: World, names: Iterable[str], resources: Iterable[Resource]) -> Iterator[Delete]:
    for name in sorted(names):
        for resource in resources:
            child = world.child(resource, name) if name else None
            if child is not None and not is_deleting(child):
                yield Delete(resource, workflow.namespace, name, uid_of(child))


def _invalid(workflow: Workflow, checked: Checked, run: Run, world: World, now: datetime) -> Plan:
    """Failed, with what to change. A run in progress is stopped: nothing would look after its children any more."""
    tasks = {name: _stopped(task, timestamp(now)) for name, task in run.tasks.items()}
    names = {one.child for task in run.tasks.values() for one in (task.items or (task,)) if one.phase == "Running"}
    said = workflow.status.phase == "Failed" and workflow.status.observed_generation == workflow.generation
    ended = (workflow.status.completion_time if workflow.status.phase != "Running" else "") or timestamp(now)
    request = rerun.asked(workflow)
    run = replace(run, tasks=tasks, ended=ended, requested=request or run.requested)
    refused = (rerun.refusal(request, checked),) if request else ()
    return Plan(
        status=status_of(workflow, checked, run, "Failed", checked.problems, now),
        delete=tuple(_deletes(workflow, world, names, MADE.values())),
        emit=() if said else (events.invalid(workflow, run.number, checked.problems),),
        record=(*refused, *(() if said else (Record("Invalid", checked.problems, "Warning"),))),
    )


def _stopped(task: Task, at: str) -> Task:
    if task.over:
        return task
    items = tuple(_stopped(item, at) for item in task.items)
    return replace(task, phase="Failed", ended=at, message="stopped: the spec has become invalid", items=items)
