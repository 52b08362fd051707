"""Which services the embedded platform runs, and how each is started in this process or in one of its own.

A service is a module with settings and `run(settings, clock)`; nothing else is known of it here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module

from gryvia_common.clock import Clock
from gryvia_common.runtime.settings import ProcessSettings


@dataclass(frozen=True, slots=True)
class EmbeddedService:
    """`package` is run as `python -m <package>`; `runner` is the module that has `run`; `settings` names its settings class."""

    name: str
    package: str
    runner: str
    settings: str

    def settings_type(self) -> type[ProcessSettings]:
        module, _, name = self.settings.partition(":")
        found: type[ProcessSettings] = getattr(import_module(module), name)
        return found

    def run(self) -> Callable[[ProcessSettings, Clock], Awaitable[None]]:
        """Imported late: the interpreter of one service must not load the others."""
        found: Callable[[ProcessSettings, Clock], Awaitable[None]] = import_module(self.runner).run
        return found


SERVICES = (
    EmbeddedService("bridge", "gryvia_bridge", "gryvia_bridge.__main__", "gryvia_bridge.settings:BridgeSettings"),
    EmbeddedService("jobs", "gryvia_jobs", "gryvia_jobs.controller", "gryvia_jobs.settings:JobsSettings"),
    EmbeddedService("tuner", "gryvia_tuner", "gryvia_tuner.__main__", "gryvia_tuner.settings:TunerSettings"),
    EmbeddedService(
        "workflow", "gryvia_workflow", "gryvia_workflow.__main__", "gryvia_workflow.settings:WorkflowSettings"
    ),
    EmbeddedService(
        "registry", "gryvia_registry", "gryvia_registry.controller", "gryvia_registry.settings:RegistrySettings"
    ),
)
