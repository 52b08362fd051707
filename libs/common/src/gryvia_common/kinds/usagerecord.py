"""GryviaUsageRecord: GPU hours or tokens that were used, with their price. It has no status: it is itself the record."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gryvia_common.kinds.kind import Column, Kind, Reference
from gryvia_common.kinds.model import Spec, Status
from gryvia_common.kinds.wire import Bool, Int32, Int64, Number, Time


class GryviaUsageRecordSpec(Spec):
    """The spec of a GryviaUsageRecord."""

    tenant: str = Field(description="Who it is attributed to.")
    job: str = Field(description="Name of the GryviaAIJob, or llm:<model>.")
    job_uid: str = Field(alias="jobUID", description="UID of the GryviaAIJob.")
    gpus: Int32 = Field(description="GPUs held; 0 for tokens.")
    gpu_hours: Number = Field(description="Wall hours times GPUs.")
    rate: Number = Field(description="Price per GPU hour.")
    cost: Number = Field(description="gpuHours times rate, or the price of the tokens.")
    start: Time = Field(description="Start of the job or the hour.")
    final: Bool = Field(description="Sealed: it does not change any more.")
    end: Time | None = Field(None, description="End of the job or the hour.")
    currency: str | None = Field(None, description="Currency.")
    sku: str | None = Field(None, description="GryviaGpuSku it was priced by.")
    gpu_type: str | None = Field(None, description="GPU type.")
    kind: Literal["gpu", "tokens"] | None = Field(None, description="What is metered. Left out means gpu.")
    model: str | None = Field(None, description="Gateway model of a tokens record.")
    input_tokens: Int64 | None = Field(None, description="Prompt tokens.")
    output_tokens: Int64 | None = Field(None, description="Completion tokens.")
    partial_requests: Int64 | None = Field(
        None, description="Requests in it whose client or upstream left before the end; their tokens are estimates."
    )


class NoStatus(Status):
    """A usage record has no status."""


USAGE_RECORD = Kind(
    name="GryviaUsageRecord",
    plural="gryviausagerecords",
    spec=GryviaUsageRecordSpec,
    status=NoStatus,
    summary="GPU hours or tokens that were used, with their price.",
    status_subresource=False,
    columns=(
        Column("Tenant", ".spec.tenant"),
        Column("Job", ".spec.job"),
        Column("GPU-Hours", ".spec.gpuHours", "number"),
        Column("Cost", ".spec.cost", "number"),
        Column("Final", ".spec.final", "boolean"),
    ),
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaUsageRecord
metadata:
  name: usage-6f1d
spec:
  tenant: vision
  job: resnet
  jobUID: 6f1d9c1e-0c6c-4c0f-9a3c-0d2c6d3d1a11
  gpus: 4
  gpuHours: 12.5
  rate: 2.5
  cost: 31.25
  start: "2026-01-05T08:00:00Z"
  end: "2026-01-05T11:07:30Z"
  final: true
""",
        labels=(
            ("usage-kind", "tokens on records of the LLM gateway."),
            ("llm-gateway-instance", "Replica that wrote a tokens record."),
        ),
    ),
)
