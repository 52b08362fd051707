"""The settings of the workflow service: those of every service, and the two of the contract."""

from __future__ import annotations

from pydantic import Field

from gryvia_common.runtime.settings import ProcessSettings


class WorkflowSettings(ProcessSettings):
    """GRYVIA_WORKFLOW_MAX_PARALLEL_STEPS and GRYVIA_WORKFLOW_ALLOW_WEBHOOKS."""

    workflow_max_parallel_steps: int = Field(
        default=10,
        ge=1,
        description="Most steps of one workflow that run at the same time; a waiting approval is none.",
    )
    workflow_allow_webhooks: bool = Field(default=False, description="Whether webhook steps may call out.")
