"""The settings of the workflow service: those of every service, those of the contract, and where webhooks may go."""

from __future__ import annotations

from pydantic import Field

from gryvia_common.runtime.settings import ProcessSettings


class WorkflowSettings(ProcessSettings):
    """GRYVIA_WORKFLOW_MAX_PARALLEL_STEPS, GRYVIA_WORKFLOW_ALLOW_WEBHOOKS, GRYVIA_WORKFLOW_WEBHOOK_ALLOWED."""

    workflow_max_parallel_steps: int = Field(
        default=10,
        ge=1,
        description="Most steps of one workflow that run at the same time; a waiting approval is none.",
    )
    workflow_allow_webhooks: bool = Field(default=False, description="Whether webhook steps may call out.")
    workflow_webhook_allowed: str = Field(
        default="",
        description="Hosts, host:port and networks (CIDR), by commas, that webhook steps may call though they are not public.",
    )
