"""What every pod worker of one node shares: the API, the clock, the places, the launcher and the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gryvia_devcluster.clock import Clock
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.node.environment import ReadConfig
from gryvia_devcluster.node.images import Images
from gryvia_devcluster.node.layout import Layout
from gryvia_devcluster.node.process.spawner import Spawner
from gryvia_devcluster.types import Api, Json


@dataclass(frozen=True, slots=True)
class Settings:
    """`gpus` None: as many as /dev shows. `sandboxed` None: mount namespaces where the machine allows them.
    `api_address` is given to pods as KUBERNETES_SERVICE_HOST and _PORT."""

    name: str = "devcluster"
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None
    sandboxed: bool | None = None
    restart_backoff: float = 10.0
    image_backoff: float = 10.0
    api_address: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    api: Api
    clock: Clock
    layout: Layout
    settings: Settings
    spawner: Spawner
    images: Images
    allocatable: dict[str, str]
    host_ip: str
    names_file: str
    hosts_file: Callable[[str], str]
    service_env: Callable[[Json], dict[str, str]]

    def reader(self, namespace: str) -> ReadConfig:
        return lambda resource, name: self.find(resource, namespace, name)

    def find(self, resource: str, namespace: str, name: str) -> Json | None:
        """An object of the core group, or None."""
        try:
            return self.api.get(self.api.resource("", resource), namespace, name)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            return None

    def event(
        self,
        pod: Json,
        reason: str,
        message: str,
        type_: Literal["Normal", "Warning"] = "Normal",
        component: str = "kubelet",
    ) -> None:
        try:
            self.api.record_event(pod, type=type_, reason=reason, message=message, component=component)
        except ApiError as error:
            # The namespace may be on its way out, and then takes no events; nobody is left to read them.
            if error.reason not in ("Forbidden", "NotFound"):
                raise
