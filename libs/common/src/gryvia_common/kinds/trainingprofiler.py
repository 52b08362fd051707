"""GryviaTrainingProfiler: measures how well running jobs use their GPUs and says what to change."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import ATOMIC, Bool, Int32, Number, Time

Severity = Literal["info", "warning", "critical"]
TOP_RECOMMENDATIONS = 20


class AutoProfile(Model):
    """When a job is profiled."""

    warmup_steps: Int32 = Field(100, description="Steps before profiling. Default 100.")
    profile_steps: Int32 | None = Field(None, description="No effect.")
    cooldown_minutes: Int32 = Field(30, description="Minutes between profiles of a job. Default 30.")


class ProfileTarget(Model):
    """Which jobs."""

    type: Literal["auto", "on-demand", "job-ref"] = Field("auto", description="How jobs are chosen. Default auto.")
    job_selector: dict[str, str] | None = Field(None, description="Labels to match. Default all jobs of the namespace.")
    job_ref: str | None = Field(None, description="The one job, for type job-ref.")
    auto_profile: AutoProfile | None = Field(None, description="When a job is profiled.")


class GpuComputeMetrics(Model):
    """GPU compute."""

    sm_utilization: Bool | None = Field(None, description="No effect; always measured.")
    tensor_core_utilization: Bool | None = Field(None, description="No effect; always measured.")
    flops_efficiency: Bool | None = Field(None, description="No effect; always measured.")


class GpuMemoryMetrics(Model):
    """GPU memory."""

    memory_bandwidth_utilization: Bool | None = Field(None, description="No effect; always measured.")
    peak_memory_usage: Bool | None = Field(None, description="No effect; always measured.")


class DataPipelineMetrics(Model):
    """Data loading."""

    io_wait_ratio: Bool | None = Field(None, description="No effect; always measured.")
    dataloader_throughput: Bool | None = Field(None, description="No effect; always measured.")


class CommunicationMetrics(Model):
    """Communication."""

    nccl_bandwidth: Bool | None = Field(None, description="No effect; always measured.")
    all_reduce_time: Bool | None = Field(None, description="No effect; always measured.")
    compute_comm_overlap: Bool | None = Field(None, description="No effect; always measured.")


class ProfileMetrics(Model):
    """What is measured."""

    gpu_compute: GpuComputeMetrics | None = Field(None, description="GPU compute.")
    gpu_memory: GpuMemoryMetrics | None = Field(None, description="GPU memory.")
    data_pipeline: DataPipelineMetrics | None = Field(None, description="Data loading.")
    communication: CommunicationMetrics | None = Field(None, description="Communication.")


class Recommendations(Model):
    """Which categories are looked at; all when the block is left out."""

    batch_size: Bool | None = Field(None, description="Batch size.")
    data_loading: Bool | None = Field(None, description="Data loading.")
    mixed_precision: Bool | None = Field(None, description="Mixed precision.")
    compilation_optimization: Bool | None = Field(None, description="Compilation.")
    distributed_strategy: Bool | None = Field(None, description="Distribution.")
    gpu_type_recommendation: Bool | None = Field(None, description="GPU type.")


class Analysis(Model):
    """What is said about it."""

    compare_baseline: Bool | None = Field(None, description="No effect.")
    baseline_source: Literal["builtin", "custom"] | None = Field(None, description="No effect.")
    recommendations: Recommendations | None = Field(None, description="Which categories are looked at.")
    severity_threshold: Severity = Field("warning", description="Lowest severity kept. Default warning.")


class Output(Model):
    """Where it is said."""

    store_in_job_status: Bool = Field(False, description="Write the score to the job's status. Default false.")
    emit_events: Bool = Field(False, description="Emit Events. Default false.")
    prometheus_metrics: Bool | None = Field(None, description="No effect.")


class GryviaTrainingProfilerSpec(Spec):
    """The spec of a GryviaTrainingProfiler."""

    target: ProfileTarget = Field(description="Which jobs.")
    metrics: ProfileMetrics | None = Field(None, description="What is measured.")
    analysis: Analysis | None = Field(None, description="What is said about it.")
    output: Output | None = Field(None, description="Where it is said.")


class Recommendation(Model):
    """One thing to change."""

    job_name: str = Field(description="Job.")
    category: str = Field(description="Category.")
    severity: Severity = Field(description="How much it matters.")
    description: str = Field(description="What to change.")
    estimated_impact: str = Field(description="What it would bring.")
    timestamp: Time = Field(description="When it was found.")


class GryviaTrainingProfilerStatus(Status):
    """The status of a GryviaTrainingProfiler."""

    jobs_profiled: Int32 | None = Field(None, description="Profiles taken so far.")
    avg_mfu: Number | None = Field(None, alias="avgMFU", description="Mean model FLOPS utilisation, 0 to 100.")
    cluster_efficiency_score: Number | None = Field(None, description="Mean score of the last pass, 0 to 100.")
    top_recommendations: Annotated[list[Recommendation], Field(max_length=TOP_RECOMMENDATIONS), ATOMIC] | None = Field(
        None, description="What to change, newest first, at most 20."
    )
    last_profile_time: Time | None = Field(None, description="Last pass that profiled a job.")


TRAINING_PROFILER = Kind(
    name="GryviaTrainingProfiler",
    plural="gryviatrainingprofilers",
    spec=GryviaTrainingProfilerSpec,
    status=GryviaTrainingProfilerStatus,
    summary="Measures how well running jobs use their GPUs and says what to change.",
    columns=(
        Column("JobsProfiled", ".status.jobsProfiled", "integer"),
        Column("AvgMFU", ".status.avgMFU", "number"),
        Column("EfficiencyScore", ".status.clusterEfficiencyScore", "number"),
        AGE,
    ),
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaTrainingProfiler
metadata:
  name: all-jobs
spec:
  target:
    type: auto
    autoProfile:
      warmupSteps: 200
  analysis:
    severityThreshold: info
  output:
    emitEvents: true
""",
        conditions=(("Ready", "ProfilingComplete, NoEligibleJobs, NoJobs or JobDiscoveryFailed."),),
        annotations=(("last-profile-time", "On a job: when it was last profiled."),),
        notes=(
            "What is measured is read from pod annotations `gryvia.io/`gpu-sm-utilization, gpu-tensor-utilization, "
            "gpu-tflops, gpu-memory-bw-utilization, gpu-peak-memory-gb, gpu-total-memory-gb, gpu-io-wait-ratio, "
            "dataloader-throughput, nccl-bandwidth-gbps, allreduce-time-fraction, compute-comm-overlap, "
            "mixed-precision and torch-compile.",
        ),
    ),
)
