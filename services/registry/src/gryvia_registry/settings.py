"""The settings of the registry service: those of every service."""

from __future__ import annotations

from gryvia_common.runtime.settings import ProcessSettings


class RegistrySettings(ProcessSettings):
    """Nothing of its own."""
