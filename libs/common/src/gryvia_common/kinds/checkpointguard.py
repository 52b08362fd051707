"""GryviaCheckpointGuard: asks running jobs for checkpoints, by the clock and when trouble shows, and keeps the good ones."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import Bool, Int32, Int64, Time, keyed_by

Trigger = Literal["GpuHealthDegraded", "SpotPreemptionSignal", "MemoryPressure", "LossDivergence", "NvlinkDegraded"]
GUARD_CHECKPOINTS = 100


class LabelSelector(Model):
    """Objects by their labels."""

    match_labels: dict[str, str] | None = Field(None, description="Labels to match. Default all jobs of the namespace.")


class EmergencyCheckpoint(Model):
    """Checkpoints out of turn."""

    triggers: list[Trigger] | None = Field(None, description="Signals that force a checkpoint.")


class Replication(Model):
    """Copies of a checkpoint elsewhere."""

    backend: Literal["s3", "gcs", "azure-blob", "nfs", "pvc"] | None = Field(None, description="Where copies go.")
    copies: Int32 | None = Field(None, description="How many.")
    async_upload: Bool | None = Field(None, description="Copy in the background.")


class CheckpointPolicy(Model):
    """When a checkpoint is taken, and how."""

    interval_minutes: Int32 = Field(30, description="Period. Default 30.")
    emergency_checkpoint: EmergencyCheckpoint | None = Field(None, description="Checkpoints out of turn.")
    replication: Replication | None = Field(None, description="Copies elsewhere.")
    signal: Literal["SIGUSR1", "SIGUSR2", "none"] | None = Field(
        None, description="Signal sent to the job besides the annotation. Default SIGUSR1."
    )
    directory: str | None = Field(
        None, description="Folder in the job's volume where checkpoints appear. Default /data/checkpoints."
    )
    timeout_seconds: Int32 | None = Field(
        None, ge=1, description="How long a requested checkpoint may take before it counts as failed. Default 600."
    )


class Validation(Model):
    """How a checkpoint is checked, and how many are kept."""

    checksum_verify: Bool | None = Field(None, description="Compare checksums.")
    tensor_shape_verify: Bool | None = Field(None, description="Compare tensor shapes.")
    load_test: Bool | None = Field(None, description="Load it.")
    retain_valid_only: Bool | None = Field(None, description="Keep no invalid ones.")
    retention_count: Int32 = Field(5, description="Checkpoints kept per job. Default 5.")


class Restore(Model):
    """What a restarted job is given."""

    auto_restore: Bool | None = Field(None, description="Restart from the last valid checkpoint.")
    prefer_near_storage: Bool | None = Field(None, description="Prefer a copy near the node.")
    inject_env_vars: dict[str, str] | None = Field(None, description="Environment for the restarted job.")


class Monitoring(Model):
    """What is told about it."""

    export_metrics: Bool | None = Field(None, description="Export metrics.")
    alert_on_failure: Bool | None = Field(None, description="Raise an Event when a checkpoint fails.")


class GryviaCheckpointGuardSpec(Spec):
    """The spec of a GryviaCheckpointGuard."""

    job_selector: LabelSelector = Field(description="Jobs that are guarded.")
    checkpoint_policy: CheckpointPolicy = Field(description="When a checkpoint is taken, and how.")
    validation: Validation | None = Field(None, description="How it is checked, and how many are kept.")
    restore: Restore | None = Field(None, description="What a restarted job is given.")
    monitoring: Monitoring | None = Field(None, description="What is told about it.")


class Checkpoint(Model):
    """One checkpoint."""

    name: str = Field(description="Its name.")
    job: str = Field(description="Job it belongs to.")
    requested_at: Time | None = Field(None, description="When it was asked for.")
    completed_at: Time | None = Field(None, description="When its file was there.")
    trigger: str | None = Field(None, description="Interval, or the signal that forced it.")
    path: str | None = Field(None, description="File in the job's volume.")
    step: Int64 | None = Field(None, description="Training step.")
    size_bytes: Int64 | None = Field(None, description="Bytes.")
    checksum: str | None = Field(None, description="sha256 of the file.")
    valid: Bool | None = Field(None, description="Whether it passed the checks.")
    message: str | None = Field(None, description="Why it failed.")


class GryviaCheckpointGuardStatus(Status):
    """The status of a GryviaCheckpointGuard."""

    phase: Literal["Idle", "Monitoring", "Checkpointing", "Restoring", "Error"] | None = Field(
        None, description="What the guard does."
    )
    total_checkpoints: Int32 | None = Field(None, description="Checkpoints taken.")
    valid_checkpoints: Int32 | None = Field(None, description="Those that passed the checks.")
    emergency_checkpoints_taken: Int32 | None = Field(None, description="Those forced by a signal.")
    matched_jobs: Int32 | None = Field(None, description="Jobs that match.")
    last_checkpoint_time: Time | None = Field(None, description="Newest checkpoint.")
    last_valid_checkpoint: str | None = Field(None, description="Newest valid checkpoint.")
    storage_used: str | None = Field(None, description="Space the kept checkpoints take.")
    avg_checkpoint_duration: str | None = Field(None, description="Mean time from request to file, such as 1m30s.")
    checkpoints: Annotated[list[Checkpoint], Field(max_length=GUARD_CHECKPOINTS), keyed_by("name")] | None = Field(
        None, description="Kept checkpoints and running requests, newest first."
    )
    message: str | None = Field(None, description="Why the phase is what it is.")


CHECKPOINT_GUARD = Kind(
    name="GryviaCheckpointGuard",
    plural="gryviacheckpointguards",
    spec=GryviaCheckpointGuardSpec,
    status=GryviaCheckpointGuardStatus,
    summary="Asks running jobs for checkpoints, by the clock and when trouble shows, and keeps the good ones.",
    columns=(
        Column("Valid", ".status.validCheckpoints", "integer"),
        Column("LastCheckpoint", ".status.lastCheckpointTime"),
        Column("StorageUsed", ".status.storageUsed"),
        AGE,
    ),
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaCheckpointGuard
metadata:
  name: nightly
spec:
  jobSelector:
    matchLabels: {team: vision}
  checkpointPolicy:
    intervalMinutes: 30
    emergencyCheckpoint:
      triggers: [SpotPreemptionSignal, MemoryPressure]
  validation:
    checksumVerify: true
    retentionCount: 3
""",
        conditions=(
            ("GuardActive", "Monitoring, NoMatchingJobs or JobLookupFailed."),
            ("CheckpointValid", "CheckpointValid, ValidationFailed or CheckpointFailed."),
            ("EmergencyTriggered", "EmergencyCheckpoint."),
        ),
        annotations=(("spot-preemption", "On a pod, by the node handler: it will be preempted."),),
    ),
)
