"""The logs of containers as files: one for each attempt, of which the newest and the one before are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.node.layout import Layout
from gryvia_devcluster.types import Json


class ContainerLogs:
    """Implements types.PodLogs. `running(uid, container)` tells whether the newest attempt is still writing."""

    def __init__(self, layout: Layout, running: Callable[[str, str], bool]) -> None:
        self._layout = layout
        self._running = running

    def path(self, pod: Json, container: str, *, previous: bool = False) -> Path:
        """Raises ApiError BadRequest, in the kubelet's words, where there is no such log."""
        meta = pod["metadata"]
        folder = self._layout.container(meta["uid"], container)
        attempts = sorted(int(file.stem) for file in folder.glob("*.log") if file.stem.isdecimal())
        if previous:
            newest = max(attempts, default=0)
            if newest - 1 not in attempts:
                raise ApiError(
                    "BadRequest", f'previous terminated container "{container}" in pod "{meta["name"]}" not found'
                )
            return self._layout.log(meta["uid"], container, newest - 1)
        if not attempts:
            raise ApiError("BadRequest", f'container "{container}" in pod "{meta["name"]}" {_why_none(pod, container)}')
        return self._layout.log(meta["uid"], container, attempts[-1])

    def ended(self, pod: Json, container: str) -> bool:
        return not self._running(pod["metadata"]["uid"], container)


def _why_none(pod: Json, container: str) -> str:
    status = pod.get("status", {})
    for state in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        if state["name"] == container:
            waiting = state["state"].get("waiting")
            return f"is waiting to start: {waiting['reason']}" if waiting else "has no log"
    return "is waiting to start: Pending"
