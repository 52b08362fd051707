"""What the bridge is configured with, from the environment."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from gryvia_bridge.lease import LeaseSettings
from gryvia_common.kube.config import SERVICE_ACCOUNT
from gryvia_common.runtime.settings import ProcessSettings


def own_namespace(account: Path = SERVICE_ACCOUNT) -> str:
    """The pod's namespace, `default` outside a cluster."""
    file = account / "namespace"
    return file.read_text().strip() if file.exists() else "default"


class BridgeSettings(ProcessSettings):
    """Every field is GRYVIA_<NAME>."""

    bridge_lease: bool = Field(default=True, description="Elect one active bridge; off where there is no second one.")
    bridge_lease_name: str = Field(default="gryvia-bridge", description="Name of the Lease.")
    bridge_lease_namespace: str = Field(default_factory=own_namespace, description="Namespace of the Lease.")

    @property
    def lease(self) -> LeaseSettings | None:
        if not self.bridge_lease:
            return None
        return LeaseSettings(self.bridge_lease_namespace, self.bridge_lease_name)
