"""What every service process is configured with, from the environment (`GRYVIA_*`); a service adds its own fields.

Read once, where the process starts. Defaults work on a laptop; nothing listens beyond loopback unless GRYVIA_HTTP_HOST says so.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from gryvia_common.bus.settings import BusSettings
from gryvia_common.kube.config import KubeSettings


def replica_name() -> str:
    """Unique among live replicas: in a cluster the pod's name, elsewhere host and process."""
    host = os.environ.get("HOSTNAME") or socket.gethostname()
    return f"{host}-{os.getpid()}".replace(".", "-")


class ProcessSettings(BaseSettings):
    """Every field is GRYVIA_<NAME>."""

    model_config = SettingsConfigDict(env_prefix="GRYVIA_", frozen=True)

    replica: str = Field(default_factory=replica_name, description="Name of this replica, unique among live ones.")
    http_host: str = Field(default="127.0.0.1", description="Address of /healthz, /readyz and /metrics.")
    http_port: int = Field(default=0, ge=0, le=65535, description="Port of the same; 0 takes a free one.")
    port_file: Path | None = Field(default=None, description="Where the port taken is written, for who started us.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Lowest level logged.")
    log_format: Literal["json", "console"] = Field(default="json", description="JSON lines, or columns for a person.")
    workers: int = Field(default=8, ge=1, le=256, description="Passes at once, per kind.")
    shutdown_seconds: float = Field(default=5.0, gt=0, description="How long passes may finish at shutdown.")
    lease_seconds: float = Field(default=12.0, ge=3, description="How long a silent replica keeps its partitions.")
    kube: KubeSettings = Field(default_factory=KubeSettings, description="The API server.")
    nats: BusSettings = Field(default_factory=BusSettings, description="The bus.")
