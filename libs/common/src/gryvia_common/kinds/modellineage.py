"""GryviaModelLineage: where a model came from, hashed so that a change shows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import Bool, Int32, Number, Time


class LineageModel(Model):
    """The model."""

    name: str = Field(description="Model name.")
    version: str = Field(description="Model version.")
    registry: str | None = Field(None, description="Registry reference.")
    format: Literal["pytorch", "onnx", "tensorrt", "safetensors"] | None = Field(None, description="File format.")


class Code(Model):
    """The code it was trained with."""

    git_repo: str | None = Field(None, description="Repository URL.")
    git_commit: str | None = Field(None, description="Commit.")
    git_branch: str | None = Field(None, description="Branch.")
    container_image: str | None = Field(None, description="Training image. Collected from the job.")


class DatasetRecord(Model):
    """A dataset it was trained on."""

    dataset_ref: str = Field(description="Dataset name or URI.")
    version: str | None = Field(None, description="Dataset version.")
    checksum: str | None = Field(None, description="sha256.")


class Data(Model):
    """The data it was trained on."""

    datasets: list[DatasetRecord] | None = Field(None, description="Datasets.")


class Training(Model):
    """The run that produced it."""

    job_ref: str | None = Field(None, description="Producing GryviaAIJob.")
    hyperparameters: dict[str, str] | None = Field(None, description="Values used.")
    distributed_config: str | None = Field(None, description="Summary of the distribution. Collected from the job.")


class Infrastructure(Model):
    """The machines it was trained on."""

    gpu_nodes: list[str] | None = Field(None, description="Nodes used. Collected from the job.")
    network_type: str | None = Field(None, description="Network class. Collected from the job.")
    storage_backend: str | None = Field(None, description="Storage. Collected from the job.")
    total_gpu_hours: Number | None = Field(None, description="GPU hours. Collected from the job.")
    total_cost: Number | None = Field(None, description="Cost in USD; never collected.")


class Anomaly(Model):
    """Something that went wrong."""

    timestamp: Time = Field(description="When.")
    type: str = Field(description="What.")
    description: str | None = Field(None, description="Detail.")


class InterventionRecord(Model):
    """Something that was done."""

    timestamp: Time = Field(description="When.")
    action: str = Field(description="What.")
    reason: str | None = Field(None, description="Why.")


class CheckpointRecord(Model):
    """A checkpoint of the run."""

    timestamp: Time = Field(description="When.")
    epoch: Int32 | None = Field(None, description="Epoch.")
    step: Int32 | None = Field(None, description="Step.")
    checkpoint_path: str | None = Field(None, description="Path.")


class RunEvents(Model):
    """What happened during the run."""

    anomalies: list[Anomaly] | None = Field(None, description="What went wrong.")
    interventions: list[InterventionRecord] | None = Field(None, description="What was done.")
    checkpoint_timeline: list[CheckpointRecord] | None = Field(None, description="Checkpoints.")


class Benchmark(Model):
    """A benchmark result."""

    name: str = Field(description="Benchmark.")
    score: Number = Field(description="Score.")
    date: Time | None = Field(None, description="Date.")


class Evaluation(Model):
    """How good it is."""

    metrics: dict[str, Number] | None = Field(None, description="Evaluation results.")
    evaluation_job: str | None = Field(None, description="Evaluating GryviaAIJob.")
    benchmarks: list[Benchmark] | None = Field(None, description="Benchmark results.")


class Provenance(Model):
    """Where the model came from."""

    auto_capture: Bool = Field(False, description="Collect from the referenced job. Default false.")
    code: Code | None = Field(None, description="The code it was trained with.")
    data: Data | None = Field(None, description="The data it was trained on.")
    training: Training | None = Field(None, description="The run that produced it.")
    infrastructure: Infrastructure | None = Field(None, description="The machines it was trained on.")
    events: RunEvents | None = Field(None, description="What happened during the run.")
    evaluation: Evaluation | None = Field(None, description="How good it is.")


class Attestation(Model):
    """A signed statement."""

    format: Literal["in-toto", "sigstore", "custom"] | None = Field(None, description="Format.")
    attach_to_registry: Bool | None = Field(None, description="Mark it as attached to the registry entry.")


class DataPrivacy(Model):
    """Personal data."""

    pii_scanned: Bool | None = Field(None, description="A scan for personal data was done.")
    pii_found: Bool | None = Field(None, description="Personal data was found.")
    dpia_completed: Bool | None = Field(None, description="The impact assessment was done.")


class Compliance(Model):
    """What the record must satisfy."""

    immutable_record: Bool | None = Field(None, description="Not enforced.")
    cryptographic_chain: Bool | None = Field(None, description="Include the previous hash in the next.")
    signed_by: str | None = Field(None, description="Signer.")
    attestation: Attestation | None = Field(None, description="A signed statement.")
    regulatory_framework: list[str] | None = Field(None, description="Frameworks to satisfy.")
    data_privacy: DataPrivacy | None = Field(None, description="Personal data.")


class GryviaModelLineageSpec(Spec):
    """The spec of a GryviaModelLineage."""

    model: LineageModel = Field(description="The model.")
    provenance: Provenance | None = Field(None, description="Where it came from.")
    compliance: Compliance | None = Field(None, description="What the record must satisfy.")


class GryviaModelLineageStatus(Status):
    """The status of a GryviaModelLineage."""

    lineage_complete: Bool | None = Field(None, description="Whether all that is asked for is recorded.")
    provenance_hash: str | None = Field(None, description="sha256:<hex> over model, provenance and compliance.")
    previous_hash: str | None = Field(None, description="The hash before it, when chained.")
    created_at: Time | None = Field(None, description="When the record was first seen.")
    attestation_attached: Bool | None = Field(None, description="Whether the statement is marked as attached.")
    compliance_status: Literal["Compliant", "NonCompliant"] | None = Field(None, description="Whether it complies.")
    reproducibility_verified: Bool | None = Field(
        None, description="Whether the run could be repeated from the record."
    )


MODEL_LINEAGE = Kind(
    name="GryviaModelLineage",
    plural="gryviamodellineages",
    spec=GryviaModelLineageSpec,
    status=GryviaModelLineageStatus,
    summary="Where a model came from, hashed so that a change shows.",
    columns=(
        Column("Model", ".spec.model.name"),
        Column("Version", ".spec.model.version"),
        Column("Complete", ".status.lineageComplete", "boolean"),
        AGE,
    ),
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaModelLineage
metadata:
  name: digits-v2
spec:
  model:
    name: digits
    version: "2"
  provenance:
    autoCapture: true
    code:
      gitRepo: https://git.example.com/digits.git
      gitCommit: 3f1c2ab
    training:
      jobRef: digits-train
""",
        conditions=(
            ("ProvenanceCollected", "Collected or CollectionFailed."),
            ("HashComputed", "Computed or HashFailed."),
            ("Ready", "LineageComplete or LineageIncomplete."),
        ),
    ),
)
