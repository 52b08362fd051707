"""The controllers a cluster would run, as far as Gryvia needs them.

Each is a pure `sync(object, related objects, now) -> actions`; shell.py runs them all. Times of a real cluster that
would make a laptop demo slow can be set in Settings; nothing else about them is adjustable.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from gryvia_devcluster.clock import Clock
from gryvia_devcluster.controllers.deployment import deployment_controllers
from gryvia_devcluster.controllers.endpoints import endpoint_controllers
from gryvia_devcluster.controllers.garbage import garbage_controllers
from gryvia_devcluster.controllers.job import job_controllers
from gryvia_devcluster.controllers.replicaset import replicaset_controllers
from gryvia_devcluster.controllers.shell import Controller, Shell
from gryvia_devcluster.controllers.statefulset import statefulset_controllers
from gryvia_devcluster.controllers.volumes import volume_controllers
from gryvia_devcluster.types import Api

__all__ = ["Settings", "run_controllers"]


@dataclass(frozen=True, slots=True)
class Settings:
    job_backoff: timedelta = timedelta(seconds=10)


def all_controllers(settings: Settings) -> list[Controller]:
    return [
        *job_controllers(settings.job_backoff),
        *deployment_controllers(),
        *replicaset_controllers(),
        *statefulset_controllers(),
        *volume_controllers(),
        *endpoint_controllers(),
        *garbage_controllers(),
    ]


async def run_controllers(api: Api, *, clock: Clock, settings: Settings | None = None) -> None:
    """Run every controller until cancelled."""
    await Shell(api, clock, all_controllers(settings or Settings())).run()
