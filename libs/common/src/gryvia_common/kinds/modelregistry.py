"""GryviaModelRegistry: one version of a model, where its files are, and how far it is promoted.

The blocks that a workflow's register step copies into an entry (artifacts, serving, policies) are defined here and imported
there. Exactly one entry of a family is in production at any instant; that is the service's work, not the schema's.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import ATOMIC, SET, Bool, Cel, Int32, Int64, Time

Stage = Literal["dev", "staging", "production", "archived"]
Backend = Literal["triton", "vllm", "tensorrt-llm", "torchserve"]
Direction = Literal["maximize", "minimize"]
RegistryPhase = Literal["Registered", "Deploying", "Serving", "Canary", "RolledBack", "Failed"]
REGISTRY_HISTORY = 50


class ModelArtifacts(Model):
    """Where the files of a model are: in an object store or on a claim."""

    s3_path: str | None = Field(None, alias="s3Path", description="Object-store location, a URI.")
    pvc_name: str | None = Field(None, description="PersistentVolumeClaim holding the files.")
    sub_path: str | None = Field(None, description="Path inside the claim or bucket.")
    format: str | None = Field(None, description="File format: pytorch, onnx, tensorrt, safetensors or other.")
    size_bytes: Int64 | None = Field(None, description="Total size in bytes.")

    rules = (Cel("has(self.s3Path) || has(self.pvcName)", "artifacts needs s3Path or pvcName"),)


class ModelSource(Model):
    """What produced the model."""

    job_ref: str | None = Field(None, description="Producing GryviaAIJob.")
    tuner_ref: str | None = Field(None, description="Producing GryviaAutoTuner.")
    workflow_ref: str | None = Field(None, description="Producing GryviaWorkflow.")


class ServingConfig(Model):
    """How the model is served while it is in production."""

    backend: Backend = Field("vllm", description="Server type. Default vllm.")
    replicas: Int32 = Field(1, description="Pods. Default 1.")
    gpu_count: Int32 | None = Field(None, description="GPUs per pod; left out or 0 takes the service's default.")
    gpu_type: str | None = Field(None, description="Preferred GPU type.")
    service_name: str | None = Field(
        None, description="Inference service shared by all versions of the family; a new version arrives as its canary."
    )
    canary_weight: Int32 = Field(
        10, description="Share of a new version on the shared service, in percent. Default 10."
    )
    promote_after_seconds: Int64 = Field(300, description="Healthy seconds before a canary is promoted. Default 300.")
    args: list[str] | None = Field(None, description="Extra server arguments.")
    service_port: Int32 | None = Field(
        None, ge=1, le=65535, description="Port the server listens on and is probed at. Default by backend."
    )


class PromotionPolicy(Model):
    """When an entry in staging is promoted by itself."""

    metric: str = Field(description="Metadata key that is compared with the entry in production.")
    direction: Direction = Field("maximize", description="Which way is better. Default maximize.")
    min_delta: str = Field("0", description="Improvement needed, a decimal. Default 0.")
    threshold: str | None = Field(None, description="Absolute bound to reach, a decimal.")
    stderr_metric: str | None = Field(
        None,
        description="Metadata key with the metric's standard error: a difference inside the noise does not promote.",
    )
    require_approval: Bool | None = Field(None, description="Wait for a person's approval before promoting.")


class RollbackPolicy(Model):
    """When the entry in production is rolled back by itself."""

    metric: str = Field(description="Metadata key that is watched.")
    threshold: str = Field(description="Bound that triggers the rollback, a decimal.")
    direction: Direction = Field(
        "maximize", description="maximize: below the threshold is a breach; minimize: above it. Default maximize."
    )


class GryviaModelRegistrySpec(Spec):
    """The spec of a GryviaModelRegistry."""

    model_name: str = Field(description="Model family.")
    version: str = Field(description="Version of this entry.")
    artifacts: ModelArtifacts = Field(description="Where the files are.")
    source: ModelSource | None = Field(None, description="What produced the model.")
    stage: Stage | None = Field(None, description="Promotion stage. Left out means dev.")
    description: str | None = Field(None, description="Free text.")
    metadata: dict[str, str] | None = Field(
        None, description="Scores, lineage, notes; policies read their metrics here."
    )
    auto_serve: Bool = Field(False, description="Serve the model while it is in production. Default false.")
    serving_config: ServingConfig | None = Field(None, description="How it is served.")
    promotion_policy: PromotionPolicy | None = Field(None, description="Promotion from staging to production.")
    rollback_policy: RollbackPolicy | None = Field(None, description="Rollback from production.")
    aliases: Annotated[list[str], SET] | None = Field(
        None, description="Names that point to this entry, such as champion; unique in the family."
    )

    rules = (
        Cel(
            "self.modelName == oldSelf.modelName",
            "modelName cannot be changed: what was in production when is known by family; register a new entry",
        ),
    )


class ProductionSpan(Model):
    """A time that an entry of the family was in production."""

    entry: str = Field(description="Name of the entry.")
    version: str = Field(description="Its version.")
    start_time: Time = Field(description="When it became the production entry.")
    end_time: Time | None = Field(None, description="When it ceased to be; left out while it is.")
    reason: str | None = Field(None, description="Why it ended: Replaced, RolledBack, Released or Deleted.")


class GryviaModelRegistryStatus(Status):
    """The status of a GryviaModelRegistry."""

    phase: RegistryPhase | None = Field(None, description="Where the entry is.")
    serving_endpoint: str | None = Field(None, description="URL of the service.")
    deployed_at: Time | None = Field(None, description="When it began to serve.")
    registered_at: Time | None = Field(None, description="When it was registered.")
    health: Literal["Healthy", "Unhealthy", "Unknown"] | None = Field(None, description="Health of the serving object.")
    inference_service_name: str | None = Field(None, description="Inference service that serves it.")
    previous_version: str | None = Field(None, description="What was in production before, by time.")
    message: str | None = Field(None, description="Why the phase is what it is.")
    promotion_decision: Literal["Promoted", "Rejected", "Waiting"] | None = Field(
        None, description="What the promotion policy last decided."
    )
    aliases: Annotated[list[str], ATOMIC] | None = Field(None, description="Aliases that point to this entry now.")
    history: Annotated[list[ProductionSpan], Field(max_length=REGISTRY_HISTORY), ATOMIC] | None = Field(
        None,
        description="On the production entry: what of the family was in production from when to when, newest first.",
    )
    production_change: Int64 | None = Field(
        None, description="Number of the family's change that last brought this entry into production."
    )


MODEL_REGISTRY = Kind(
    name="GryviaModelRegistry",
    plural="gryviamodelregistries",
    spec=GryviaModelRegistrySpec,
    status=GryviaModelRegistryStatus,
    summary="One version of a model: its files, its scores, its promotion stage and how it is served.",
    columns=(
        Column("Model", ".spec.modelName"),
        Column("Version", ".spec.version"),
        Column("Stage", ".spec.stage"),
        Column("Phase", ".status.phase"),
        AGE,
    ),
    label="model",
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaModelRegistry
metadata:
  name: digits-v2
spec:
  modelName: digits
  version: "2"
  artifacts:
    pvcName: digits-models
    subPath: v2
    format: other
  stage: staging
  metadata:
    val_accuracy: "0.978"
  promotionPolicy:
    metric: val_accuracy
    minDelta: "0.002"
""",
        conditions=(
            ("ModelRegistered", "The entry is known and its files are named."),
            (
                "InProduction",
                "True: it is its family's production entry, and since when. False: NotPromoted, Replaced, RolledBack, Released, "
                "Archived.",
            ),
            ("ModelServing", "Serving, Canary, Deploying, Failed; NotServing, ServingUnavailable."),
            (
                "PromotionGate",
                "What the promotion policy decided, with the numbers: Promoted; MetricMissing, NotANumber, PastThreshold, "
                "NotBetter, WithinNoise, ProductionAsked, ProductionNotComparable, ApprovalNeeded, ApprovalRejected, "
                "ApprovalUnreadable.",
            ),
            ("RolledBack", "PolicyBreached, Requested; refused: NotServing, NoPreviousVersion, NotStable."),
            ("AliasesHeld", "False (TakenOver): an entry that asked later has an alias that is listed here too."),
            ("DeletionHeld", "The entry is to be deleted and is still served, and by whom."),
            ("FamilyRecord", "False: the family's record cannot be read or written, and what to do."),
            ("FieldsIgnored", "Fields that change nothing in this combination."),
            ("SpecValid", "False: what is wrong with the spec."),
        ),
        children=(
            (
                "ConfigMap `gryvia-family-<modelName>`",
                "The record of the family; it belongs to no entry and outlives them.",
            ),
        ),
        labels=(("model-family", "Family, on its record."),),
        annotations=(
            ("rollback-requested", "Asks for a rollback to what was in production before; removed when done."),
            (
                "approval",
                '`{"decision": "Approved", "by": "<who>", "comment": "..."}` (or "Rejected"): for promotionPolicy.requireApproval.',
            ),
        ),
    ),
)
