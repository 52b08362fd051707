"""pods/log: what a container wrote, read from the node's files, with kubectl's options.

The node keeps the raw output without times, so `timestamps`, `sinceSeconds` and `sinceTime` go by the file's last write:
best effort, exact for a container that has just been quiet. Following reads the file as it grows and ends when the
container has ended and the file is read to its end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gryvia_devcluster.api import refusals
from gryvia_devcluster.api.listing import flag, integer
from gryvia_devcluster.api.paths import Target
from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.clock import parse
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Json, PodLogs

_CHUNK = 256 * 1024
_POLL_SECONDS = 0.1


@dataclass(slots=True)
class LogRequest:
    registry: Registry
    logs: PodLogs
    pod: Json
    container: str
    path: Path
    follow: bool
    previous: bool
    tail: int | None
    left: int | None
    since: datetime | None
    timestamps: bool

    @classmethod
    def open(cls, registry: Registry, logs: PodLogs | None, target: Target, query: Mapping[str, str]) -> LogRequest:
        """Raises ApiError: no such pod or container, not started, no earlier container."""
        pod = registry.get(registry.resource("", "pods"), target.namespace, target.name)
        container = _container(pod, query.get("container", ""))
        if logs is None:
            raise ApiError("BadRequest", "this cluster runs no node, so its pods have no logs")
        previous = flag(query, "previous")
        _check_started(pod, container, previous)
        return cls(
            registry=registry,
            logs=logs,
            pod=pod,
            container=container,
            path=logs.path(pod, container, previous=previous),
            follow=flag(query, "follow") and not previous,
            previous=previous,
            tail=integer(query, "tailLines") if "tailLines" in query else None,
            left=integer(query, "limitBytes") if "limitBytes" in query else None,
            since=_since(registry, query),
            timestamps=flag(query, "timestamps"),
        )

    async def chunks(self) -> AsyncIterator[bytes]:
        while not self.path.exists():
            if not self.follow:
                return
            await asyncio.sleep(_POLL_SECONDS)
        with self.path.open("rb") as file:
            if self.since and self._written() < self.since:
                file.seek(0, 2)
            elif self.tail is not None:
                file.seek(_tail_offset(self.path, self.tail))
            while self.left is None or self.left > 0:
                ended = not self.follow or self.logs.ended(self.pod, self.container)
                data = file.read(_CHUNK)
                if data:
                    yield self._shaped(data)
                elif ended:
                    return
                else:
                    await asyncio.sleep(_POLL_SECONDS)

    def _written(self) -> datetime:
        return datetime.fromtimestamp(self.path.stat().st_mtime, UTC)

    def _shaped(self, data: bytes) -> bytes:
        if self.timestamps:
            stamp = self._written().strftime("%Y-%m-%dT%H:%M:%S.%fZ ").encode()
            data = b"".join(stamp + line for line in data.splitlines(keepends=True))
        if self.left is not None:
            data = data[: self.left]
            self.left -= len(data)
        return data


def _container(pod: Json, wanted: str) -> str:
    spec, name = pod["spec"], pod["metadata"]["name"]
    regular = [item["name"] for item in spec.get("containers") or []]
    every = [item["name"] for item in spec.get("initContainers") or []] + regular
    if wanted:
        if wanted not in every:
            raise ApiError("BadRequest", f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(regular) == 1:
        return str(regular[0])
    raise ApiError(
        "BadRequest", f"a container name must be specified for pod {name}, choose one of: [{' '.join(every)}]"
    )


def _check_started(pod: Json, container: str, previous: bool) -> None:
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    statuses = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    found: Json = next((item for item in statuses if item["name"] == container), {})
    if previous:
        if not (found.get("lastState") or {}).get("terminated"):
            raise ApiError("BadRequest", f'previous terminated container "{container}" in pod "{name}" not found')
        return
    state = found.get("state") or {}
    started = state.get("running") or state.get("terminated") or (found.get("lastState") or {}).get("terminated")
    if not started:
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        message = f'container "{container}" in pod "{name}" is waiting to start: {reason}'
        raise ApiError("BadRequest", message)


def _since(registry: Registry, query: Mapping[str, str]) -> datetime | None:
    if seconds := integer(query, "sinceSeconds"):
        return registry.state.clock.now() - timedelta(seconds=seconds)
    if text := query.get("sinceTime"):
        try:
            return parse(text)
        except ValueError as error:
            cause = refusals.invalid_value("sinceTime", text, "must be an RFC 3339 time")
            raise ApiError("Invalid", f"sinceTime: {cause['message']}", causes=[cause]) from error
    return None


def _tail_offset(path: Path, lines: int) -> int:
    """Where the last `lines` lines begin."""
    starts: deque[int] = deque(maxlen=max(lines, 1))
    offset = 0
    with path.open("rb") as file:
        for line in file:
            starts.append(offset)
            offset += len(line)
    return starts[0] if lines and starts else offset
