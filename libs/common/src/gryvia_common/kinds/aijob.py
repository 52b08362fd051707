"""GryviaAIJob: one training, inference, fine-tuning or evaluation run, on one pod or on several that work together.

JobTemplate is the same spec as other kinds embed it (trials, workflow steps): there nothing is required, because the
service that owns the template judges it (a tuner without an image is Failed with a message, not refused).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.core import Affinity, EnvVar, PullPolicy, ResourceRequirements, Toleration, Volume, VolumeMount
from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import ATOMIC, Bool, Cel, Int32, Int64, Number, QuantityText, Time

JobType = Literal["training", "inference", "fine-tuning", "evaluation"]
JobPhase = Literal[
    "Pending",
    "Queued",
    "Scheduling",
    "Running",
    "Succeeded",
    "Failed",
    "Rejected",
    "Preempted",
    "Cancelled",
    "Unknown",
]
METRIC_HISTORY = 32


class Elastic(Model):
    """An elastic run: it goes on with fewer workers."""

    min_nodes: Int32 = Field(ge=1, description="Fewest workers for an elastic run, 1 to nodes.")


class Distributed(Model):
    """A run on several coordinated pods."""

    enabled: Bool = Field(False, description="Run several coordinated pods. Default false.")
    framework: Literal["pytorch", "tensorflow", "horovod", "deepspeed", "megatron"] | None = Field(
        None, description="Training framework, exported to the pods as GRYVIA_DIST_FRAMEWORK."
    )
    nodes: Int32 | None = Field(None, description="Number of pods.")
    gpus_per_node: Int32 | None = Field(None, description="Processes per pod, one a GPU.")
    backend: Literal["nccl", "gloo", "mpi"] | None = Field(
        None, description="Collective backend, exported as GRYVIA_DIST_BACKEND; gloo leaves the NCCL variables out."
    )
    elastic: Elastic | None = Field(None, description="Go on when some workers are lost.")

    rules = (
        Cel(
            "!has(self.elastic) || !has(self.nodes) || self.elastic.minNodes <= self.nodes",
            "elastic.minNodes must not be above nodes",
            ".elastic.minNodes",
        ),
    )


class JobTemplate(Spec):
    """The spec of a GryviaAIJob as other kinds embed it: nothing in it is required."""

    see = "GryviaAIJob"

    type: JobType = Field("training", description="Workload class. Default training.")
    gpus: Int32 = Field(0, ge=0, description="GPUs per pod; 0 means CPU-only. Default 0.")
    image: str | None = Field(None, description="Container image.")
    model: str | None = Field(None, description="Model name, informational.")
    gpu_type: str | None = Field(
        None,
        description="Preferred GPU type: H100, A100, L40, V100, T4, any, or another value of the label gryvia.io/gpu.",
    )
    storage: str | None = Field(None, description="Storage backend (storage class); set, it gives a PVC at /data.")
    storage_request: QuantityText = Field("100Gi", description="Size of that PVC. Default 100Gi.")
    network: Literal["rdma", "sriov", "standard"] | None = Field(None, description="Network class.")
    image_pull_policy: PullPolicy | None = Field(None, description="Image pull policy.")
    command: list[str] | None = Field(None, description="Entrypoint; the image's own when left out.")
    args: list[str] | None = Field(None, description="Arguments of the entrypoint.")
    env: list[EnvVar] | None = Field(None, description="Environment, placed before what the platform injects.")
    working_dir: str | None = Field(None, description="Working directory.")
    distributed: Distributed | None = Field(None, description="Run on several pods that find each other.")
    resources: ResourceRequirements | None = Field(None, description="Container requests and limits.")
    volumes: list[Volume] | None = Field(None, description="Extra volumes of the pod.")
    volume_mounts: list[VolumeMount] | None = Field(None, description="Extra mounts of the container.")
    priority: Int32 | None = Field(None, ge=0, le=100, description="0 to 100; higher is more important.")
    retry_limit: Int32 = Field(0, description="How often a failed pod is run again (backoffLimit). Default 0.")
    timeout: str | None = Field(
        None, description="Longest run time, for example 90m, 24h, 7d or 1d12h (activeDeadlineSeconds)."
    )
    node_selector: dict[str, str] | None = Field(None, description="Node labels the pods need.")
    tolerations: list[Toleration] | None = Field(None, description="Taints the pods tolerate.")
    affinity: Affinity | None = Field(None, description="Affinity of the pods (core/v1 Affinity).")
    workload_kind: Literal["job", "statefulset"] | None = Field(
        None,
        description="Workload that runs the job. Default job, and statefulset for type inference. Fixed once created.",
    )
    suspend: Bool = Field(False, description="Keep the batch Job suspended. Default false.")
    queue_name: str | None = Field(None, description="Kueue LocalQueue in the same namespace.")
    metric_patterns: dict[str, str] | None = Field(
        None,
        description="Metrics read from the log: metric name to a regular expression with one group around the number.",
    )


class GryviaAIJobSpec(JobTemplate):
    """The spec of a GryviaAIJob."""

    see = ""

    type: JobType = Field(description="Workload class.")
    gpus: Int32 = Field(ge=0, description="GPUs per pod; 0 means CPU-only.")
    image: str = Field(description="Container image.")


class MetricPoint(Model):
    """The metrics as they were at one step."""

    step: Int32 | None = Field(None, description="Training step or epoch; none when the report had none.")
    values: dict[str, Number] = Field(description="Metric name to value.")


class JobMetrics(Model):
    """What the training code reported last, from its log, its termination message or the annotations of the job."""

    gpu_utilization: Number | None = Field(None, description="GPU utilisation in percent.")
    throughput: str | None = Field(None, description="Throughput as the job words it.")
    loss: Number | None = Field(None, description="Latest loss.")
    epoch: Int32 | None = Field(None, description="Latest epoch.")
    step: Int32 | None = Field(None, description="Latest step.")
    values: dict[str, Number] | None = Field(None, description="Latest value of every reported metric, by name.")
    history: Annotated[list[MetricPoint], Field(max_length=METRIC_HISTORY), ATOMIC] | None = Field(
        None,
        description="Metrics over the run, thinned to at most 32 points; first and newest are there.",
    )


class PlacementExplanation(Model):
    """Why a node was chosen or not."""

    node: str = Field(description="Name of the node.")
    base_score: Int32 = Field(description="Score before the fabric is looked at.")
    fabric_penalty: Int32 = Field(description="Taken off for the state of the fabric.")
    final_score: Int32 = Field(description="What counted.")
    reasons: Annotated[list[str], Field(max_length=8), ATOMIC] | None = Field(None, description="Why, for people.")
    signal_age_seconds: Int64 | None = Field(None, description="Age of the newest signal behind the score.")


class GryviaAIJobStatus(Status):
    """The status of a GryviaAIJob."""

    phase: JobPhase | None = Field(
        None, description="Where the job is; Succeeded, Failed, Rejected, Cancelled are final."
    )
    start_time: Time | None = Field(None, description="When it first ran.")
    completion_time: Time | None = Field(None, description="When it ended.")
    nodes_allocated: Annotated[list[str], ATOMIC] | None = Field(None, description="Nodes its pods are on.")
    gpus_allocated: Int32 | None = Field(None, description="GPUs held.")
    retries: Int32 | None = Field(None, description="Pods that failed by their own fault; lost nodes do not count.")
    metrics: JobMetrics | None = Field(None, description="What the training code reported.")
    replicas_ready: Int32 | None = Field(None, description="Ready pods.")
    message: str | None = Field(None, description="Why the phase is what it is.")
    placement_explanation: Annotated[list[PlacementExplanation], Field(max_length=16), ATOMIC] | None = Field(
        None, description="How the nodes scored when the job was placed."
    )


AI_JOB = Kind(
    name="GryviaAIJob",
    plural="gryviaaijobs",
    spec=GryviaAIJobSpec,
    status=GryviaAIJobStatus,
    summary="One training, inference, fine-tuning or evaluation run, on one pod or on several that work together.",
    columns=(
        Column("Type", ".spec.type"),
        Column("GPUs", ".spec.gpus", "integer"),
        Column("Phase", ".status.phase"),
        AGE,
    ),
    label="job",
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaAIJob
metadata:
  name: digits
spec:
  type: training
  gpus: 0
  image: python:3.11-slim
  command: ["python", "-c"]
  args:
    - |
      import gryvia
      for step in range(10):
          gryvia.report(step=step, loss=1.0 / (step + 1))
  retryLimit: 2
  timeout: 30m
  metricPatterns:
    accuracy: 'val_acc=([0-9.]+)'
""",
        conditions=(
            ("Scheduled", "True: CPUOnly, PodsScheduled; False (Unschedulable) with what is missing."),
            (
                "PodsReady",
                "AllReady, NotReady, Suspended, what holds a pod up (ErrImagePull, ...), or the final phase.",
            ),
            ("KueueAdmitted", "Waiting or Admitted."),
            ("MetricsReported", "Where the metrics come from."),
            (
                "MetricsValid",
                "False (NotRead) says what was reported and not read, and why; Unknown (PodsAwaited): its pods are awaited.",
            ),
            ("FieldsIgnored", "True names the fields that have no effect in this combination."),
            ("SpecApplied", "False (TemplateFrozen) when the spec was changed after the workload had been created."),
            ("Rejected", "The quota refused it, with the reason."),
        ),
        children=(
            ("Job `<job>`", "Indexed; one pod a node. For workloadKind job."),
            ("StatefulSet `<job>-training`", "For workloadKind statefulset; it restarts for ever."),
            ("Service `<job>-headless`", "Port 29500; gives the pods their names."),
            ("PersistentVolumeClaim `<job>-data`", "Mounted at /data, when storage is set."),
        ),
        labels=(
            ("job", "Name of the job, on its children and pods."),
            ("type", "Workload class."),
            ("model, team", "Copied from the job."),
        ),
        annotations=(
            ("metric-<name>", "Value of a metric, written by training code."),
            ("output-<key>", "Output for a workflow, written by training code."),
            ("cancel", '"true" cancels the job.'),
            ("queue-name, fabric-aware", "Kueue queue, placement by the fabric."),
            ("last-profile-time", "When the profiler last looked at it."),
            ("forked-from, fork-name, fork-step", "Where a forked job came from."),
        ),
        notes=(
            "Pods of a distributed job get MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, NODE_RANK, NNODES, NPROC_PER_NODE, "
            "GRYVIA_DIST_FRAMEWORK, GRYVIA_DIST_BACKEND and the NCCL variables, after the job's own env.",
            "The pod template is frozen once created; only suspend is kept in step.",
        ),
    ),
)
