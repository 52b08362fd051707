"""The job service as one value: what it decides, what it owns, what it needs to read."""

from __future__ import annotations

from functools import partial

from gryvia_common.clock import Clock
from gryvia_common.kinds.aijob import AI_JOB, GryviaAIJobSpec, GryviaAIJobStatus
from gryvia_common.kube.resources import JOBS, PODS, PVCS, SERVICES, STATEFUL_SETS
from gryvia_common.progress.log import READ_LOG, read_log
from gryvia_common.runtime.controller import Controller
from gryvia_common.runtime.service import Service, run_service
from gryvia_jobs.decide import decide, invalid
from gryvia_jobs.settings import JobsSettings


def controller(settings: JobsSettings) -> Controller[GryviaAIJobSpec, GryviaAIJobStatus]:
    return Controller(
        kind=AI_JOB,
        decide=partial(decide, settings.kueue_integration),
        invalid=invalid,
        children=(JOBS, STATEFUL_SETS, SERVICES, PVCS, PODS),
        actions={READ_LOG: read_log},
        subresources=("pods/log",),
    )


async def run(settings: JobsSettings, clock: Clock) -> None:
    """The service, until it is cancelled."""
    await run_service(Service("jobs", (controller(settings),)), settings, clock)
