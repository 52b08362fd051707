"""GryviaGpuMemoryOptimizer: foresees out-of-memory failures and finds GPUs that are too large. Cluster-scoped."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import Bool, Integer, Number, Time


class JobSelector(Model):
    """Jobs by their labels."""

    match_labels: dict[str, str] | None = Field(None, description="Labels to match.")


class OptimizerScope(Model):
    """What is watched."""

    type: Literal["cluster", "namespace", "job-selector"] = Field(description="What is watched.")
    namespace: str | None = Field(None, description="Target namespace, for type namespace.")
    job_selector: JobSelector | None = Field(None, description="Jobs, for type job-selector.")


class MemoryGrowthProfiling(Model):
    """How growth is projected."""

    profile_steps: Integer = Field(20, description="Samples before projecting. Default 20.")
    projection_method: Literal["linear", "exponential", "polynomial"] = Field(
        "linear", description="Projection. Default linear."
    )


class PreemptiveAction(Model):
    """What is done before memory runs out."""

    type: Literal["warn", "auto-mitigate", "evict"] = Field("warn", description="Action. Default warn.")
    warning_threshold_percent: Integer = Field(85, description="Utilisation needed to act. Default 85.")
    auto_enable_gradient_checkpointing: Bool | None = Field(None, description="Mitigation: GRADIENT_CHECKPOINTING=1.")
    auto_enable_mixed_precision: Bool | None = Field(None, description="Mitigation: MIXED_PRECISION=1.")
    auto_reduce_batch_size: Bool | None = Field(None, description="Mitigation: BATCH_SIZE_FACTOR=0.5.")


class OomPrevention(Model):
    """Foreseeing out-of-memory failures."""

    enabled: Bool = Field(False, description="Predict them. Default false.")
    memory_growth_profiling: MemoryGrowthProfiling | None = Field(None, description="How growth is projected.")
    preemptive_action: PreemptiveAction | None = Field(None, description="What is done before memory runs out.")


class RightSizingAdvice(Model):
    """What may be recommended."""

    gpu_type_downgrade: Bool | None = Field(None, description="A smaller type.")
    gpu_count_reduction: Bool | None = Field(None, description="Fewer GPUs.")


class RightSizing(Model):
    """Finding GPUs that are too large."""

    enabled: Bool = Field(False, description="Recommend smaller GPUs. Default false.")
    analysis_window: Literal["1h", "24h", "7d"] | None = Field(None, description="No effect.")
    minimum_gpu_memory_headroom: Integer = Field(15, description="Headroom above the peak in percent. Default 15.")
    recommendations: RightSizingAdvice | None = Field(None, description="What may be recommended.")


class InferencePacking(Model):
    """Several models on one GPU."""

    enabled: Bool | None = Field(None, description="No effect.")
    compatibility_check: Bool | None = Field(None, description="No effect.")
    isolation_level: Literal["none", "mps", "mig"] | None = Field(None, description="No effect.")
    memory_utilization_target: Integer | None = Field(None, description="No effect.")


class GryviaGpuMemoryOptimizerSpec(Spec):
    """The spec of a GryviaGpuMemoryOptimizer."""

    scope: OptimizerScope = Field(description="What is watched.")
    oom_prevention: OomPrevention | None = Field(None, description="Foreseeing out-of-memory failures.")
    right_sizing: RightSizing | None = Field(None, description="Finding GPUs that are too large.")
    inference_packing: InferencePacking | None = Field(None, description="Several models on one GPU.")


class MemoryEfficiency(Model):
    """How full the GPUs are."""

    avg_peak_utilization: Number | None = Field(None, description="Mean peak utilisation in percent.")
    avg_steady_state_utilization: Number | None = Field(None, description="Mean steady utilisation in percent.")


class GryviaGpuMemoryOptimizerStatus(Status):
    """The status of a GryviaGpuMemoryOptimizer."""

    jobs_analyzed: Integer | None = Field(None, description="GPU samples of the last pass.")
    oom_prevented: Integer | None = Field(None, description="Mitigations and evictions so far.")
    right_sizing_recommendations: Integer | None = Field(None, description="Recommendations of the last pass.")
    memory_efficiency: MemoryEfficiency | None = Field(None, description="How full the GPUs are.")
    last_analysis_time: Time | None = Field(None, description="Last pass.")


GPU_MEMORY_OPTIMIZER = Kind(
    name="GryviaGpuMemoryOptimizer",
    plural="gryviagpumemoryoptimizers",
    spec=GryviaGpuMemoryOptimizerSpec,
    status=GryviaGpuMemoryOptimizerStatus,
    summary="Foresees out-of-memory failures and finds GPUs that are too large.",
    namespaced=False,
    columns=(
        Column("Scope", ".spec.scope.type"),
        Column("OOM-Prevention", ".spec.oomPrevention.enabled", "boolean"),
        Column("Right-Sizing", ".spec.rightSizing.enabled", "boolean"),
        Column("Jobs-Analyzed", ".status.jobsAnalyzed", "integer"),
        Column("OOM-Prevented", ".status.oomPrevented", "integer"),
        AGE,
    ),
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaGpuMemoryOptimizer
metadata:
  name: cluster
spec:
  scope:
    type: cluster
  oomPrevention:
    enabled: true
    preemptiveAction:
      type: warn
  rightSizing:
    enabled: true
    recommendations:
      gpuCountReduction: true
""",
        conditions=(
            ("AnalysisRunning", "AnalysisActive or CollectionFailed."),
            ("OomMonitoringActive", "OomMonitoringActive or OomAnalysisFailed."),
            ("RightSizingActive", "RightSizingActive or RightSizingFailed."),
        ),
    ),
)
