"""After a restart of devcluster: what is left of processes, and what their containers' records say.

Processes do not outlive the node: the launcher kills them when its socket closes, and the kernel kills its children when
the launcher dies. Only grandchildren of a crash can be left, and they are found by the session they are in. A number is
believed only together with its start time, or when the process itself carries our path in its environment.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from gryvia_devcluster.clock import parse
from gryvia_devcluster.node.process.launcher import start_time
from gryvia_devcluster.node.state import ContainerRecord, Terminated, Waiting
from gryvia_devcluster.types import Json

_LOST = "The container could not be located when the node started again"


def restore_record(spec: Json, status: Json, first_reason: str, now: datetime) -> ContainerRecord:
    """The record of a container as the API has it; one that ran when the node went down has ended since."""
    group = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    record = ContainerRecord(spec["name"], spec["image"], Waiting(first_reason))
    record.sidecar = spec.get("restartPolicy") == "Always"
    known = next((s for s in group if s["name"] == spec["name"]), None)
    if known is None:
        return record
    record.restarts = known.get("restartCount", 0)
    record.container_id = known.get("containerID", "")
    record.last = _ended(known.get("lastState") or {})
    state = known.get("state") or {}
    if "running" in state:
        started = parse(state["running"]["startedAt"])
        record.state = Terminated(137, "ContainerStatusUnknown", started, now, record.container_id, _LOST)
    elif (ended := _ended(state)) is not None:
        record.state = ended
    elif record.last is not None:
        record.state, record.last = record.last, None
    return record


def _ended(state: Json) -> Terminated | None:
    found = state.get("terminated")
    if found is None:
        return None
    started = parse(found["startedAt"]) if found.get("startedAt") else None
    return Terminated(
        found["exitCode"],
        found.get("reason", ""),
        started,
        parse(found["finishedAt"]),
        found.get("containerID", ""),
        found.get("message", ""),
    )


def kill_leftovers(pods: Path) -> int:
    """Kill what a crashed node left running below `pods`; how many processes that were. Linux only: needs /proc."""
    killed = 0
    for record in pods.glob("*/containers/*/process.json"):
        with suppress(ValueError, OSError):
            known = json.loads(record.read_text())
            killed += _kill_session(known["pid"], known["start"], str(record.parent))
        record.unlink(missing_ok=True)
    return killed


def _kill_session(leader: int, start: int, place: str) -> int:
    killed = 0
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        with suppress(OSError):
            if os.getsid(pid) != leader:
                continue
            is_leader = pid == leader and start_time(pid) == start
            if is_leader or place.encode() in (entry / "environ").read_bytes():
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed
