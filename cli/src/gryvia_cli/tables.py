"""What `gryvia list` shows of each kind: its printer columns, as kubectl does, and for some kinds what a person asks for instead.

Values are text; the JSON output never comes from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from gryvia_cli.model_text import MODEL_HEADERS, model_row
from gryvia_cli.output import age, cell
from gryvia_cli.workflow_text import WORKFLOW_HEADERS, workflow_row
from gryvia_common.kinds.kind import Kind
from gryvia_common.kinds.liveexperiment import LIVE_EXPERIMENT
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kinds.quota import QUOTA
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.objects import Json, labels_of, metadata

Row = list[str]
Rows = tuple[list[str], list[Row]]

EXPERIMENT_HEADERS = ["NAME", "METRIC", "DIRECTION", "JOBS", "LEADER", "BEST", "STATUS"]
QUOTA_HEADERS = ["NAME", "TEAM", "NAMESPACES", "GPUS", "JOBS", "GPU-HOURS", "SPENT", "TOKENS/DAY", "PHASE"]
NODE_HEADERS = ["NAME", "STATUS", "CPU", "MEMORY", "GPUS", "GPU-TYPE", "AGE"]
QUEUE_HEADERS = ["POSITION", "NAME", "PRIORITY", "GPUS", "QUEUE", "PHASE", "AGE", "REASON"]


def object_rows(kind: Kind[Any, Any], objects: Sequence[Json], *, now: datetime, namespaced: bool) -> Rows:
    """`namespaced` puts the namespace first."""
    special = SPECIAL.get(kind.name)
    if special is not None:
        headers, row = special
        rows = [row(obj, now) for obj in objects]
    else:
        headers = ["NAME"] + [column.name.upper() for column in kind.columns]
        rows = [[metadata(obj)["name"]] + [cell(obj, column, now) for column in kind.columns] for obj in objects]
    return with_namespace(headers, rows, objects) if namespaced else (headers, rows)


def with_namespace(headers: list[str], rows: list[Row], objects: Sequence[Json]) -> Rows:
    """The same with the namespace as the first column."""
    spaces = [metadata(obj).get("namespace", "") for obj in objects]
    return ["NAMESPACE", *headers], [[space, *row] for space, row in zip(spaces, rows, strict=True)]


def node_rows(nodes: Sequence[Json], now: datetime) -> Rows:
    return NODE_HEADERS, [_node(node, now) for node in nodes]


def queue_rows(jobs: Sequence[Json], now: datetime) -> Rows:
    """`jobs` in their order."""
    return QUEUE_HEADERS, [_queued(number, job, now) for number, job in enumerate(jobs, 1)]


def _experiment(obj: Json, now: datetime) -> Row:
    spec, state = obj.get("spec") or {}, obj.get("status") or {}
    comparison = spec.get("comparison") or {}
    board = state.get("leaderboard") or [{}]
    return [
        metadata(obj)["name"],
        str(comparison.get("primaryMetric", "")),
        str(comparison.get("direction", "")),
        str(len(spec.get("jobs") or [])),
        str(board[0].get("job", "")),
        _number(board[0].get("primaryMetricValue")),
        str(state.get("phase") or "Pending"),
    ]


def _quota(obj: Json, now: datetime) -> Row:
    spec, state = obj.get("spec") or {}, obj.get("status") or {}
    limits, used, money = spec.get("gpuQuota") or {}, state.get("currentUsage") or {}, state.get("budgetStatus") or {}
    return [
        metadata(obj)["name"],
        str(spec.get("team", "")),
        ",".join(spec.get("namespaces") or []),
        _share(used.get("allocatedGPUs"), limits.get("maxGPUs")),
        _share(used.get("runningJobs"), limits.get("maxRunningJobs")),
        _number(used.get("gpuHours")),
        _share(money.get("spentThisMonth"), (spec.get("budget") or {}).get("monthlyBudget")),
        _number(spec.get("tokensPerDay")),
        str(state.get("phase") or ""),
    ]


def _node(node: Json, now: datetime) -> Row:
    state = node.get("status") or {}
    capacity = state.get("capacity") or {}
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in state.get("conditions") or [])
    held = ",SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else ""
    return [
        metadata(node)["name"],
        ("Ready" if ready else "NotReady") + held,
        str(capacity.get("cpu", "")),
        str(capacity.get("memory", "")),
        str(capacity.get("nvidia.com/gpu", "0")),
        labels_of(node).get("gryvia.io/gpu", ""),
        age(metadata(node)["creationTimestamp"], now),
    ]


def _queued(number: int, job: Json, now: datetime) -> Row:
    spec, state = job.get("spec") or {}, job.get("status") or {}
    return [
        str(number),
        metadata(job)["name"],
        str(spec.get("priority") or 0),
        str(spec.get("gpus", 0)),
        str(spec.get("queueName") or ""),
        str(state.get("phase") or "Pending"),
        age(metadata(job)["creationTimestamp"], now),
        str(state.get("message") or ""),
    ]


def _number(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, int | float) else ""


def _share(used: Any, limit: Any) -> str:
    """`3/16`; `-` for what is not known or not limited."""
    return f"{_number(used) or '-'}/{_number(limit) or '-'}"


SPECIAL: dict[str, tuple[list[str], Callable[[Json, datetime], Row]]] = {
    LIVE_EXPERIMENT.name: (EXPERIMENT_HEADERS, _experiment),
    MODEL_REGISTRY.name: (MODEL_HEADERS, model_row),
    QUOTA.name: (QUOTA_HEADERS, _quota),
    WORKFLOW.name: (WORKFLOW_HEADERS, workflow_row),
}
