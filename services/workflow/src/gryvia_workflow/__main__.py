"""`python -m gryvia_workflow`: the workflow service as a process of its own."""

from __future__ import annotations

from gryvia_common.clock import Clock
from gryvia_common.runtime.process import main
from gryvia_common.runtime.service import Service, run_service
from gryvia_workflow.controller import controller
from gryvia_workflow.settings import WorkflowSettings


async def run(settings: WorkflowSettings, clock: Clock) -> None:
    """Runs until cancelled."""
    await run_service(Service("workflow", [controller(settings)]), settings, clock)


if __name__ == "__main__":
    main("workflow", WorkflowSettings, run)
