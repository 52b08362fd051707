"""What pods write, read to the end of each run of their container.

Following is one stream a container run: each byte is sent once, however long it goes on. When the stream breaks, the log is read from
its beginning and what was handed on is skipped, so no line is lost or comes twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gryvia_common.errors import Gone, Transient
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, labels_of, metadata

INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")


@dataclass(slots=True)
class PodLogs:
    """`write` takes the bytes, `goes_on` the pod and number of a later run before its first. `done` are the runs of containers read to
    their end, `printed` the bytes of each that were handed on."""

    kube: Kube
    namespace: str
    write: Callable[[bytes], None]
    goes_on: Callable[[str, int], None] = lambda pod, run: None
    done: set[tuple[str, int]] = field(default_factory=set)
    printed: dict[tuple[str, int], int] = field(default_factory=dict)

    async def read(self, pod: Json) -> None:
        """The newest run of the pod to its end, unless that has been read."""
        run = (metadata(pod)["uid"], _restarts(pod))
        if run in self.done or not _started(pod):
            return
        name = metadata(pod)["name"]
        if self.done and run not in self.printed:
            self.goes_on(name, run[1])
        skip = self.printed.setdefault(run, 0)
        try:
            async for chunk in self.kube.follow_logs(self.namespace, name):
                self.write(chunk[skip:])
                self.printed[run] += max(0, len(chunk) - skip)
                skip = max(0, skip - len(chunk))
        except (Transient, Gone):
            # Not started yet, broken off, or gone already: the next look, or the end, says more.
            return
        self.done.add(run)


def index_of(pod: Json) -> int:
    """Which worker of a job it is."""
    labels = labels_of(pod)
    return next((int(labels[name]) for name in INDEX_LABELS if name in labels), 0)


def _container(pod: Json) -> Json:
    statuses: list[Json] = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return statuses[0]


def _restarts(pod: Json) -> int:
    return int(_container(pod).get("restartCount") or 0)


def _started(pod: Json) -> bool:
    state = _container(pod).get("state") or {}
    return "running" in state or "terminated" in state
