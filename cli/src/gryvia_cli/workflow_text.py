"""What the command line says of a workflow in words and rows: one line for the run, a row a step, what each handed on.

Pure: objects in, text out. The JSON output never comes from here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from gryvia_cli.output import age, duration
from gryvia_cli.pipeline import StepView, elapsed, step_views
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.workflow import STEP_ENDED
from gryvia_common.kube.objects import Json, metadata

WORKFLOW_HEADERS = ["NAME", "PHASE", "STEPS", "RUN", "SCHEDULE", "NEXT", "TIME", "AGE", "MESSAGE"]
RUN_HEADERS = ["RUN", "PHASE", "STEPS", "FAILED", "SCHEDULED", "STARTED", "TIME", "MESSAGE"]
STEP_HEADERS = ["STEP", "TYPE", "PHASE", "TIME", "RETRIES", "CHILD", "MESSAGE"]
LONGEST_OUTPUT = 60


def workflow_row(obj: Json, now: datetime) -> list[str]:
    """Under WORKFLOW_HEADERS."""
    spec, state = obj.get("spec") or {}, obj.get("status") or {}
    total = state.get("stepsTotal", len(spec.get("steps") or []))
    return [
        metadata(obj)["name"],
        phase_of(obj),
        f"{state.get('stepsCompleted', 0)}/{total}",
        str(state["run"]) if state.get("run") else "",
        str(spec.get("schedule") or "") + (" (suspended)" if spec.get("schedule") and spec.get("suspend") else ""),
        until(state.get("nextScheduleTime"), now),
        elapsed(state, now),
        age(metadata(obj).get("creationTimestamp") or "", now),
        message_of(obj),
    ]


def message_of(obj: Json) -> str:
    """What the service says of the run, whom it waits for, and what an edit of the spec waits for."""
    state, steps = obj.get("status") or {}, waiting_approvals(obj)
    asking = f"waiting for approval: step {', '.join(step.name for step in steps)}" if steps else ""
    conditions = {one.get("type"): str(one.get("message")) for one in state.get("conditions") or []}
    return "; ".join(one for one in (str(state.get("message") or ""), asking, conditions.get("SpecPending", "")) if one)


def run_row(obj: Json, now: datetime) -> list[str]:
    """Under RUN_HEADERS, of the run that the object's status is about."""
    state = obj["status"]
    failed = [step["name"] for step in state.get("stepStatuses") or [] if step.get("phase") == "Failed"]
    phase = phase_of(obj)
    if phase == "Scheduled":
        phase = "Succeeded" if run_succeeded(state) else "Failed"
    return [
        str(state.get("run") or 0),
        phase,
        f"{state.get('stepsCompleted', 0)}/{state.get('stepsTotal', 0)}",
        ", ".join(failed),
        str(state.get("lastScheduleTime") or ""),
        str(state.get("startTime") or ""),
        elapsed(state, now),
        str(state.get("message") or ""),
    ]


def phase_of(obj: Json) -> str:
    return str((obj.get("status") or {}).get("phase") or "Pending")


def run_succeeded(state: Mapping[str, Any]) -> bool:
    """Of a run that has ended, also between the runs of a schedule."""
    phase = state.get("phase")
    if phase == "Scheduled":
        return not state.get("cancelled") and not any(
            step.get("phase") == "Failed" for step in state.get("stepStatuses") or []
        )
    return phase == "Succeeded"


def headline(obj: Json, now: datetime) -> str:
    """`digits-pipeline: Running, 3 of 6 steps, run 4, 1m20s`."""
    row = dict(zip(WORKFLOW_HEADERS, workflow_row(obj, now), strict=True))
    done, total = row["STEPS"].split("/")
    parts = [
        row["PHASE"],
        f"{done} of {total} steps",
        row["RUN"] and f"run {row['RUN']}",
        row["TIME"],
        row["NEXT"] and f"next run in {row['NEXT']}",
    ]
    text = f"{row['NAME']}: {', '.join(part for part in parts if part)}"
    return f"{text}: {row['MESSAGE']}" if row["MESSAGE"] else text


def step_rows(obj: Json, now: datetime) -> list[list[str]]:
    """Under STEP_HEADERS: the steps in the order of the spec, the items of each below it."""
    rows: list[list[str]] = []
    for step in steps_of(obj):
        rows.append(_row(step.name, step.type, step.phase or "Pending", step.state, now))
        rows += [
            _row(f"  [{item.get('index')}]", "", str(item.get("phase") or "Pending"), item, now)
            for item in step.state.get("items") or []
        ]
    return rows


def steps_of(obj: Json) -> list[StepView]:
    return step_views(obj.get("spec") or {}, (obj.get("status") or {}).get("stepStatuses") or [])


def _row(name: str, type: str, phase: str, state: Mapping[str, Any], now: datetime) -> list[str]:
    retries = state.get("retriesAttempted") or ""
    message = str(state.get("message") or "")
    return [name, type, phase, elapsed(state, now), str(retries), str(state.get("jobName") or ""), message]


def output_lines(obj: Json) -> list[str]:
    """`train: val_accuracy=0.9733 model=/models/3`, of the steps that handed something on; long ones are in a ConfigMap whole."""
    return [
        f"{step.name}: {' '.join(f'{key}={_short(value)}' for key, value in sorted(step.state['outputs'].items()))}"
        + (f" (whole in ConfigMap {step.state['outputsIn']})" if step.state.get("outputsIn") else "")
        for step in steps_of(obj)
        if step.state.get("outputs")
    ]


def changes(before: Sequence[StepView], after: Sequence[StepView]) -> Iterator[str]:
    """What has happened between two looks, a line a step that is in another phase or attempt."""
    known = {step.name: _mark(step) for step in before}
    for step in after:
        if (
            step.phase
            and known.get(step.name) != _mark(step)
            and (step.phase != "Pending" or step.state.get("message"))
        ):
            facts = [step.items_done and f"{step.items_done} items", str(step.state.get("message") or "")]
            said = "; ".join(fact for fact in facts if fact)
            yield f"{step.name}: {step.phase}" + (f": {said}" if said else "")


def _mark(step: StepView) -> tuple[str, int, str]:
    return step.phase, int(step.state.get("retriesAttempted") or 0), step.items_done


def until(text: Any, now: datetime) -> str:
    """`3h12m` to a moment that is to come; `due` when it has come."""
    if not text:
        return ""
    seconds = int((parse_timestamp(str(text)) - now).total_seconds())
    return duration(seconds) if seconds > 0 else "due"


def has_ended(obj: Json) -> bool:
    """Whether no run is under way."""
    return phase_of(obj) in ("Succeeded", "Failed", "Scheduled")


def waiting_approvals(obj: Json) -> list[StepView]:
    return [
        step for step in steps_of(obj) if step.type == "approval" and step.phase not in ("", "Pending", *STEP_ENDED)
    ]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_OUTPUT else text[: LONGEST_OUTPUT - 1] + "…"
