"""GryviaModelWatch: looks at a model hub and starts a workflow for each new model that fits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.core import SecretRef
from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import Bool, Int32, Int64, Time, keyed_by
from gryvia_common.kinds.workflow import GryviaWorkflowSpec

CandidatePhase = Literal["Queued", "Running", "Succeeded", "Failed", "Rejected", "Baseline"]
WATCH_CANDIDATES = 200


class HubSource(Model):
    """One hub query."""

    provider: Literal["huggingface", "ngc"] = Field(description="Hub; ngc is reported as unsupported.")
    author: str = Field(description="Organisation or user; not empty.")
    name_regex: str | None = Field(None, description="RE2 expression that the part after the slash must match.")
    pipeline_tag: str | None = Field(None, description="Task tag of the hub; matched exactly.")
    min_downloads: Int64 = Field(0, description="Fewest downloads. Default 0.")
    limit: Int32 = Field(20, description="Newest models examined per poll, at most 100. Default 20.")


class Sizing(Model):
    """How many GPUs a model is given."""

    gpu_memory_gb: Int32 = Field(80, alias="gpuMemoryGB", description="Memory per GPU in GB. Default 80.")
    overhead_percent: Int32 = Field(150, description="Memory needed, in percent of the weights. Default 150.")
    max_gpus: Int32 = Field(8, alias="maxGPUs", description="Models that need more are rejected. Default 8.")
    auto_size_steps: list[str] | None = Field(
        None, description="Steps whose gpus 0 is filled. Default all job steps of the template."
    )


class GryviaModelWatchSpec(Spec):
    """The spec of a GryviaModelWatch."""

    sources: list[HubSource] = Field(min_length=1, description="Hub queries; a model that any finds counts.")
    license_allowlist: list[str] | None = Field(None, description="Accepted license tags. Default any.")
    max_params_b: Int32 = Field(0, alias="maxParamsB", description="Largest size in billions; 0 is no limit.")
    token_secret_ref: SecretRef | None = Field(None, description="Secret with the hub token.")
    poll_interval: str = Field("1h", description="Time between polls, for example 30m. Default 1h.")
    include_existing: Bool = Field(False, description="Also run the models the first poll finds. Default false.")
    retrain_on_new_revision: Bool = Field(False, description="Run again on a new commit of the weights. Default false.")
    max_concurrent_runs: Int32 = Field(1, description="Workflows at the same time. Default 1.")
    sizing: Sizing | None = Field(None, description="How many GPUs a model is given.")
    suspend: Bool = Field(False, description="Stop polling and launching. Default false.")
    workflow_template: GryviaWorkflowSpec = Field(
        description="Workflow run for each model; {{model.id}} and its like are filled in."
    )


class Candidate(Model):
    """A model that a poll found."""

    id: str = Field(description="Its name on the hub.")
    phase: CandidatePhase = Field(description="What became of it.")
    first_seen: Time = Field(description="When it was first found.")
    hub_id: str | None = Field(None, description="The hub's own id, which survives a rename.")
    revision: str | None = Field(None, description="Commit of the model.")
    license: str | None = Field(None, description="License tag.")
    workflow: str | None = Field(None, description="Workflow started for it.")
    message: str | None = Field(None, description="Why the phase is what it is.")
    params_b: str | None = Field(None, alias="paramsB", description="Size in billions, a decimal.")
    gpus: Int32 | None = Field(None, description="GPUs it is given.")


class GryviaModelWatchStatus(Status):
    """The status of a GryviaModelWatch."""

    phase: Literal["Watching", "Suspended", "Failed"] | None = Field(None, description="Where the watch is.")
    last_poll_time: Time | None = Field(None, description="Last poll.")
    next_poll_time: Time | None = Field(None, description="Next poll; later when the hub asked to wait.")
    active_runs: Int32 | None = Field(None, description="Running workflows.")
    candidates: Annotated[list[Candidate], Field(max_length=WATCH_CANDIDATES), keyed_by("id")] | None = Field(
        None, description="Models found, newest first, at most 200."
    )
    message: str | None = Field(None, description="Why the phase is what it is.")


MODEL_WATCH = Kind(
    name="GryviaModelWatch",
    plural="gryviamodelwatches",
    spec=GryviaModelWatchSpec,
    status=GryviaModelWatchStatus,
    summary="Looks at a model hub and starts a workflow for each new model that fits.",
    columns=(
        Column("Phase", ".status.phase"),
        Column("Active", ".status.activeRuns", "integer"),
        Column("Last Poll", ".status.lastPollTime", "date"),
        AGE,
    ),
    label="model-watch",
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaModelWatch
metadata:
  name: small-llms
spec:
  sources:
    - provider: huggingface
      author: Qwen
      nameRegex: ^Qwen3-
      pipelineTag: text-generation
  licenseAllowlist: [apache-2.0]
  maxParamsB: 8
  pollInterval: 6h
  workflowTemplate:
    steps:
      - name: finetune
        jobTemplate:
          type: fine-tuning
          image: registry.example.com/finetune:1
          args: ["--model", "{{model.id}}", "--revision", "{{model.revision}}"]
""",
        conditions=(
            ("Valid", "Valid or Invalid."),
            ("HubReadable", "Polled or PollFailed."),
        ),
        children=(("GryviaWorkflow `<watch>-<slug>-<revision>`", "One a model."),),
        labels=(("model-watch", "Name of the watch, on its workflows."),),
        annotations=(
            ("source-model", "On the workflow: the model."),
            ("source-revision", "On the workflow: its revision."),
        ),
    ),
)
