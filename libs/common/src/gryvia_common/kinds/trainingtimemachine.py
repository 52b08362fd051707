"""GryviaTrainingTimeMachine: an index of a job's checkpoints, from any of which a new job can be forked."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import ATOMIC, Bool, Integer, Number, Time


class CheckpointField(Model):
    """Something kept with each checkpoint."""

    name: str = Field(description="Name of the field.")
    source: Literal["metric", "log", "file"] = Field(description="Where its value comes from.")
    path: str | None = Field(None, description="Pattern or file.")


class Timeline(Model):
    """The index."""

    enabled: Bool = Field(False, description="Index checkpoints. Default false.")
    index_checkpoints: Bool | None = Field(None, description="No effect.")
    metadata_per_checkpoint: list[CheckpointField] | None = Field(None, description="Kept with each checkpoint.")


class Retention(Model):
    """Which checkpoints are kept; the others' files are deleted."""

    keep_all: Bool = Field(False, description="Keep everything. Default false.")
    keep_every_nth: Integer | None = Field(None, description="Keep each Nth.")
    keep_best: Integer | None = Field(None, description="Keep the best so many.")
    keep_milestones: list[Integer] | None = Field(None, description="Steps that are always kept.")
    max_storage_gi: Integer | None = Field(None, description="Storage limit in GiB.")


class MetricSelector(Model):
    """The checkpoint with the best value of a metric."""

    name: str = Field(description="Metric.")
    selector: Literal["min", "max"] = Field(description="Which value is best.")


class ForkPoint(Model):
    """The checkpoint to start from: one of step, epoch, metric."""

    step: Integer | None = Field(None, description="Exact step.")
    epoch: Integer | None = Field(None, description="Epoch; converted to a step.")
    metric: MetricSelector | None = Field(None, description="The best by a metric.")


class ForkEnv(Model):
    """A variable that is set in the fork."""

    name: str = Field(description="Variable.")
    value: str = Field(description="Value.")


class Overrides(Model):
    """What differs from the source job."""

    env: list[ForkEnv] | None = Field(None, description="Environment that is set.")
    args: list[str] | None = Field(None, description="Arguments that are appended.")


class Fork(Model):
    """A new job from an old checkpoint."""

    name: str = Field(description="Fork id.")
    from_checkpoint: ForkPoint | None = Field(None, description="Where it starts. Default the best checkpoint.")
    overrides: Overrides | None = Field(None, description="What differs from the source job.")
    new_job_name: str | None = Field(None, description="Name of the job. Default <source>-fork-<fork>.")


class GryviaTrainingTimeMachineSpec(Spec):
    """The spec of a GryviaTrainingTimeMachine."""

    source_job: str = Field(description="GryviaAIJob that is tracked.")
    timeline: Timeline | None = Field(None, description="The index.")
    retention: Retention | None = Field(None, description="Which checkpoints are kept.")
    forks: list[Fork] | None = Field(None, description="New jobs from old checkpoints.")


class TimelinePoint(Model):
    """One checkpoint of the timeline."""

    step: Integer | None = Field(None, description="Step.")
    epoch: Integer | None = Field(None, description="Epoch.")
    metric_name: str | None = Field(None, description="Metric it is judged by.")
    metric_value: Number | None = Field(None, description="Its value.")
    timestamp: Time | None = Field(None, description="When it was written.")


class CheckpointTimeline(Model):
    """What the index holds."""

    total_checkpoints: Integer | None = Field(None, description="Checkpoints found.")
    best_checkpoint: TimelinePoint | None = Field(None, description="The best.")
    latest_checkpoint: TimelinePoint | None = Field(None, description="The newest.")


class ForkStatus(Model):
    """One fork."""

    name: str = Field(description="Fork id.")
    source_step: Integer | None = Field(None, description="Step it started from.")
    forked_job: str | None = Field(None, description="Its job.")
    status: Literal["Pending", "Creating", "Running", "Succeeded", "Failed"] | None = Field(
        None, description="Where it is."
    )
    current_metric: Number | None = Field(None, description="Newest loss of the fork.")
    message: str | None = Field(None, description="Why it failed.")


class GryviaTrainingTimeMachineStatus(Status):
    """The status of a GryviaTrainingTimeMachine."""

    checkpoint_timeline: CheckpointTimeline | None = Field(None, description="What the index holds.")
    forks: Annotated[list[ForkStatus], ATOMIC] | None = Field(None, description="The forks.")
    storage_used: str | None = Field(None, description="Space the checkpoints take, <n>Gi.")


TRAINING_TIME_MACHINE = Kind(
    name="GryviaTrainingTimeMachine",
    plural="gryviatrainingtimemachines",
    spec=GryviaTrainingTimeMachineSpec,
    status=GryviaTrainingTimeMachineStatus,
    summary="An index of a job's checkpoints, from any of which a new job can be forked.",
    columns=(
        Column("Source-Job", ".spec.sourceJob"),
        Column("Checkpoints", ".status.checkpointTimeline.totalCheckpoints", "integer"),
        Column("Storage", ".status.storageUsed"),
        AGE,
    ),
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaTrainingTimeMachine
metadata:
  name: resnet-history
spec:
  sourceJob: resnet
  timeline:
    enabled: true
  retention:
    keepBest: 3
    keepEveryNth: 10
  forks:
    - name: low-rate
      fromCheckpoint:
        step: 4000
      overrides:
        env:
          - {name: LEARNING_RATE, value: "0.0001"}
""",
        conditions=(
            ("SourceJobFound", "The tracked job exists."),
            ("TimelineIndexed", "Its checkpoints are indexed."),
            ("RetentionEnforced", "What was kept and deleted."),
            ("ForksProcessed", "The forks were created."),
        ),
        children=(("GryviaAIJob `<source>-fork-<fork>`", "A fork; not owned, it outlives this object."),),
        labels=(("forked-from, fork, type", "On a forked job."),),
        annotations=(("forked-from, fork-name, fork-step", "On a forked job: where it came from."),),
    ),
)
