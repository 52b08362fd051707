"""What the node knows of a container while it looks after it.

Records are owned by one pod worker and turned into `status.containerStatuses` by status.py; nothing else is kept, so that
what the API shows is all there is to know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Waiting:
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    since: datetime


@dataclass(frozen=True, slots=True)
class Terminated:
    exit_code: int
    reason: str
    started: datetime | None
    finished: datetime
    container_id: str = ""
    message: str = ""


State = Waiting | Running | Terminated


@dataclass(slots=True)
class ContainerRecord:
    """`started` is the startup probe's verdict, `ready` the readiness probe's; a container without probes has both at
    once. `sidecar` marks an init container with restartPolicy Always."""

    name: str
    image: str
    state: State = field(default_factory=lambda: Waiting("ContainerCreating"))
    last: Terminated | None = None
    restarts: int = 0
    started: bool = False
    ready: bool = False
    container_id: str = ""
    sidecar: bool = False

    @property
    def has_ended(self) -> bool:
        return isinstance(self.state, Terminated)

    @property
    def succeeded(self) -> bool:
        return isinstance(self.state, Terminated) and self.state.exit_code == 0


@dataclass(slots=True)
class PodRecord:
    """`failure` is a verdict over the whole pod (reason, message) that overrules what its containers say; `initialized`
    stays true once the init containers are through, whatever a sidecar does later; `interrupted`: a container ran when the
    node went down."""

    init: list[ContainerRecord]
    main: list[ContainerRecord]
    ip: str
    started: datetime
    volumes_ready: bool = False
    deleting: bool = False
    failure: tuple[str, str] | None = None
    initialized: bool = False
    interrupted: bool = False
