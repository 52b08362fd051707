"""GryviaQuota: what a team may use: GPUs, jobs, money, network, LLM tokens. Cluster-scoped."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gryvia_common.kinds.kind import Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import Bool, Int64, Integer, Number, Time


class GpuQuota(Model):
    """GPUs and jobs."""

    max_gpus: Integer = Field(alias="maxGPUs", description="GPUs in use at once.")
    max_gpus_per_job: Integer | None = Field(None, alias="maxGPUsPerJob", description="GPUs per job.")
    allowed_gpu_types: list[str] | None = Field(None, alias="allowedGPUTypes", description="Allowed GPU models.")
    max_running_jobs: Integer | None = Field(None, description="Jobs at the same time.")
    max_queued_jobs: Integer | None = Field(None, description="Queued jobs.")


class Budget(Model):
    """Money."""

    monthly_budget: Number = Field(description="USD per month.")
    alert_threshold: Number | None = Field(None, description="Percentage at which to warn, 0 to 100.")
    hard_limit: Bool = Field(False, description="Block new jobs when exceeded. Default false.")


class NetworkQuota(Model):
    """Network."""

    max_egress_mbps: Integer | None = Field(None, ge=1, le=32000, description="Egress in Mbit/s (eBPF collector only).")


class GryviaQuotaSpec(Spec):
    """The spec of a GryviaQuota."""

    team: str = Field(description="Team name.")
    namespaces: list[str] = Field(description="Namespaces covered.")
    gpu_quota: GpuQuota = Field(description="GPUs and jobs.")
    budget: Budget | None = Field(None, description="Money.")
    priority: Integer | None = Field(None, description="Team priority, 1 to 100.")
    network: NetworkQuota | None = Field(None, description="Network.")
    tokens_per_day: Int64 | None = Field(None, ge=1, description="LLM tokens per UTC day.")


class CurrentUsage(Model):
    """What is used now."""

    allocated_gpus: Integer = Field(alias="allocatedGPUs", description="GPUs in use.")
    running_jobs: Integer = Field(description="Running jobs.")
    queued_jobs: Integer = Field(description="Queued jobs.")
    gpu_hours: Number = Field(description="GPU hours this month.")


class BudgetStatus(Model):
    """What is spent."""

    spent_this_month: Number = Field(description="Spent this month.")
    remaining_budget: Number = Field(description="Left this month.")
    percent_used: Number = Field(description="Share spent in percent.")
    projected_spend: Number = Field(description="Expected for the month.")


class GryviaQuotaStatus(Status):
    """The status of a GryviaQuota."""

    phase: Literal["Active", "BudgetExceeded", "Suspended"] | None = Field(None, description="Where the quota is.")
    current_usage: CurrentUsage | None = Field(None, description="What is used now.")
    budget_status: BudgetStatus | None = Field(None, description="What is spent.")
    last_updated: Time | None = Field(None, description="When this was counted.")


QUOTA = Kind(
    name="GryviaQuota",
    plural="gryviaquotas",
    spec=GryviaQuotaSpec,
    status=GryviaQuotaStatus,
    summary="What a team may use: GPUs, jobs, money, network and LLM tokens.",
    namespaced=False,
    columns=(),
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaQuota
metadata:
  name: vision
spec:
  team: vision
  namespaces: [tenant-vision]
  gpuQuota:
    maxGPUs: 16
  tokensPerDay: 2000000
""",
        notes=("Tokens are counted over all replicas of the LLM gateway, per UTC day.",),
    ),
)
