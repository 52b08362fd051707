"""`python -m gryvia_tuner`: the tuner service as a process of its own."""

from __future__ import annotations

from gryvia_common.clock import Clock
from gryvia_common.runtime.process import main
from gryvia_common.runtime.service import Service, run_service
from gryvia_tuner.controller import controller
from gryvia_tuner.settings import TunerSettings


async def run(settings: TunerSettings, clock: Clock) -> None:
    """Runs until cancelled."""
    await run_service(Service("tuner", [controller(settings)]), settings, clock)


if __name__ == "__main__":
    main("tuner", TunerSettings, run)
