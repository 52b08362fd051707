"""The settings of the job service, from the environment (`GRYVIA_*`)."""

from __future__ import annotations

from pydantic import Field

from gryvia_common.runtime.settings import ProcessSettings


class JobsSettings(ProcessSettings):
    """What every service has, and what is particular to jobs."""

    kueue_integration: bool = Field(
        default=False, description="Hand jobs with spec.queueName or annotation gryvia.io/queue-name to Kueue."
    )
