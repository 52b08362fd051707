"""`python -m gryvia_registry`: the registry service as a process of its own."""

from __future__ import annotations

from gryvia_common.runtime.process import main
from gryvia_registry.controller import run
from gryvia_registry.settings import RegistrySettings

if __name__ == "__main__":
    main("registry", RegistrySettings, run)
