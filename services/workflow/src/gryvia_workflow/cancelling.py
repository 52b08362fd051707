"""Cancelling a run: the annotation gryvia.io/cancel, `true` or `{"by": "<who>"}`.

What runs is stopped and has failed, what has not begun is skipped, finally steps run as at any end. The status remembers it, so the
annotation is taken off in a pass of its own once the status says so, before anything else begins: it never counts twice. Without a
run that is under way or about to begin there is nothing to cancel, and it is taken off with a word. Children are looked for until the
next run or resumption: a crash may have left one that the status never knew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime

from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.workflow import Cancellation
from gryvia_common.kube.objects import is_deleting, key_of, labels_of, uid_of
from gryvia_common.kube.resources import GROUP, Resource
from gryvia_common.runtime.plan import Delete, Plan, Record
from gryvia_common.runtime.world import World
from gryvia_workflow import rerun, resume
from gryvia_workflow.run import Task, Workflow, cut

ANNOTATION = f"{GROUP}/cancel"
CHILD_ENDS = frozenset({"Succeeded", "Failed", "Rejected", "Cancelled"})


def asked(workflow: Workflow, now: datetime) -> Cancellation | None:
    """As the annotation says; None without one, and for a text that is none of the two forms."""
    text = workflow.annotations.get(ANNOTATION) or ""
    if not text:
        return None
    if text == "true":
        return Cancellation(at=timestamp(now))
    try:
        by = json.loads(text)["by"]
    except (ValueError, KeyError, TypeError):
        return None
    return Cancellation(by=cut(by, 253), at=timestamp(now)) if isinstance(by, str) and by else None


def acknowledged(workflow: Workflow, tasks: Mapping[str, Task], now: datetime, *, valid: bool) -> Plan | None:
    """The pass that takes the annotation off: it has been acted on, or there is nothing to cancel. None: there is, or nobody asks."""
    if asked(workflow, now) is None:
        return None
    without = {"annotations": {ANNOTATION: None}}
    if workflow.status.cancelled is not None:
        return Plan(metadata=without)
    last = _last(workflow)
    running = bool(workflow.status.start_time) and workflow.status.phase == "Running"
    if running and any(not task.over for name, task in tasks.items() if name not in last):
        return None
    first = workflow.spec.schedule is None and not workflow.status.start_time
    if valid and not running and (first or rerun.asked(workflow) or resume.asked(workflow)):
        return None
    said = "only finally steps are left, and they run to their end" if running else "no run is under way"
    return Plan(metadata=without, record=(Record("NothingToCancel", f"{ANNOTATION}: {said}"),))


def left(workflow: Workflow, run: int, world: World, resources: tuple[Resource, ...]) -> Iterator[Delete]:
    """Children of a cancelled run that have not ended, those of its finally steps aside."""
    last = _last(workflow)
    for resource in resources:
        for child in world.children(resource):
            labels, phase = labels_of(child), (child.get("status") or {}).get("phase")
            mine = labels.get(f"{GROUP}/run") == str(run) and labels.get(f"{GROUP}/component") == "workflow-step"
            if mine and labels.get(f"{GROUP}/step") not in last and phase not in CHILD_ENDS and not is_deleting(child):
                yield Delete(resource, workflow.namespace, key_of(child).name, uid_of(child))


def _last(workflow: Workflow) -> frozenset[str]:
    return frozenset(step.name for step in workflow.spec.steps if step.finally_)
