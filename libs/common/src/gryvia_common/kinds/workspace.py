"""GryviaWorkspace: a notebook or editor with its own volume, paused when nobody uses it.

Quantities are text here: the contract answers a bad one with phase Failed and the reason.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Spec, Status
from gryvia_common.kinds.wire import Bool, Int32, QuantityText, Time

WorkspacePhase = Literal["Pending", "Running", "Idle", "Paused", "Failed"]


class GryviaWorkspaceSpec(Spec):
    """The spec of a GryviaWorkspace."""

    type: Literal["jupyter", "vscode"] = Field(description="Environment: jupyter on port 8888, vscode on port 8080.")
    gpu_count: Int32 = Field(0, description="GPUs attached; 0 is CPU. Default 0.")
    gpu_type: str | None = Field(None, description="Preferred GPU type.")
    image: str | None = Field(None, description="Container image. Default by type.")
    storage: QuantityText | None = Field(None, description="Size of the volume at /workspace; left out means none.")
    storage_class_name: str | None = Field(None, description="Class of the volume.")
    cpu_request: QuantityText | None = Field(None, description="CPU request.")
    cpu_limit: QuantityText | None = Field(None, description="CPU limit.")
    mem_request: QuantityText | None = Field(None, description="Memory request.")
    mem_limit: QuantityText | None = Field(None, description="Memory limit.")
    idle_timeout_minutes: Int32 = Field(0, description="Minutes without activity until it is idle; 0 is off.")
    max_lifetime_hours: Int32 = Field(0, description="Longest session in hours, then it is paused; 0 is off.")
    paused: Bool = Field(False, description="Remove the pod, keep volume and address. Default false.")
    env: dict[str, str] | None = Field(None, description="Extra environment variables.")


class GryviaWorkspaceStatus(Status):
    """The status of a GryviaWorkspace."""

    phase: WorkspacePhase | None = Field(None, description="Where the workspace is.")
    url: str | None = Field(None, description="Address inside the cluster.")
    start_time: Time | None = Field(None, description="When the session began.")
    last_activity: Time | None = Field(None, description="Newest sign of use.")
    activity_source: str | None = Field(
        None, description="Where that sign came from: kernel, terminal, connection, process, gpu, annotation or start."
    )
    idle_at: Time | None = Field(None, description="When it will be idle if nothing happens.")
    pod_name: str | None = Field(None, description="Its pod.")
    pvc_name: str | None = Field(None, description="Its volume claim.")
    service_name: str | None = Field(None, description="Its service.")
    message: str | None = Field(None, description="Why the phase is what it is.")


WORKSPACE = Kind(
    name="GryviaWorkspace",
    plural="gryviaworkspaces",
    spec=GryviaWorkspaceSpec,
    status=GryviaWorkspaceStatus,
    summary="A notebook or editor with its own volume, paused when nobody uses it.",
    columns=(
        Column("Type", ".spec.type"),
        Column("GPUs", ".spec.gpuCount", "integer"),
        Column("Phase", ".status.phase"),
        Column("URL", ".status.url"),
        AGE,
    ),
    label="workspace",
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaWorkspace
metadata:
  name: lab
spec:
  type: jupyter
  storage: 20Gi
  cpuRequest: "1"
  memRequest: 2Gi
  memLimit: 4Gi
  idleTimeoutMinutes: 60
""",
        conditions=(
            ("WorkspaceReady", "Running, Failed or PodFailed."),
            ("WorkspaceIdle", "Idle."),
        ),
        children=(
            ("PersistentVolumeClaim, Pod and Service `<workspace>-workspace`", "Deleted with the workspace, data too."),
        ),
        labels=(
            ("workspace", "Name of the workspace."),
            ("component", "workspace-pod, workspace-data or workspace-service."),
            ("type", "jupyter or vscode."),
        ),
        annotations=(
            ("last-activity", "A sign of use from outside, a time."),
            ("idle-action", "pause: pause it when idle."),
        ),
    ),
)
