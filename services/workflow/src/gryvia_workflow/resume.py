"""Resuming a failed run: the annotation gryvia.io/retry-failed, any value that has not been acted on.

What failed is tried again with a new attempt number and its retries anew, single items of withItems too; what was skipped because of
that is judged again; finally steps run again at the new end. What succeeded keeps its outputs and is not repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gryvia_common.kube.resources import GROUP
from gryvia_pipelines.dag import Graph
from gryvia_workflow.run import Task, Workflow

ANNOTATION = f"{GROUP}/retry-failed"


def asked(workflow: Workflow) -> str:
    """The annotation's value if nobody has acted on it yet, else empty."""
    value = workflow.annotations.get(ANNOTATION) or ""
    return value if value != (workflow.status.resumed_by or "") else ""


def resumed(tasks: Mapping[str, Task], graph: Graph, *, cancelled: bool) -> dict[str, Task]:
    """The tasks of the resumed run; the same ones when none failed. `cancelled`: the run was, so all that was skipped is judged
    again."""
    ends = ("Failed", "Skipped") if cancelled else ("Failed",)
    again = {name for name, task in tasks.items() if task.phase in ends}
    if not again:
        return dict(tasks)
    for name in graph.order:
        if tasks[name].phase == "Skipped" and any(one in again for one in graph.before[name]):
            again.add(name)
    again |= {name for name, task in tasks.items() if graph.nodes[name].last and task.over}
    return {name: _afresh(task) if name in again else task for name, task in tasks.items()}


def _afresh(task: Task) -> Task:
    if task.items and task.phase == "Failed":
        items = tuple(_afresh(item) if item.phase == "Failed" else item for item in task.items)
        return replace(task, phase="Running", ended="", message="", items=items)
    used = [one.attempt for one in task.items or (task,) if one.started]
    return Task(task.step, task.index, attempt=max(used) + 1 if used else task.attempt)
