"""The Controller of GryviaModelRegistry, as the runtime wants it, and the service."""

from __future__ import annotations

from functools import lru_cache, partial

from gryvia_common.clock import Clock
from gryvia_common.kinds.families import parse_family
from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY, GryviaModelRegistrySpec, GryviaModelRegistryStatus
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.controller import Controller
from gryvia_common.runtime.service import Service, run_service
from gryvia_models import claims
from gryvia_registry import serving
from gryvia_registry.decide import decide, invalid
from gryvia_registry.settings import RegistrySettings
from gryvia_registry.standing import LOOK, look, refs

RECORDS = 256
"""Parsed records kept at hand: every entry of a family reads the same one."""


def controller(settings: RegistrySettings) -> Controller[GryviaModelRegistrySpec, GryviaModelRegistryStatus]:
    """The memory lives in this value, not in a module; it only saves time."""
    parse = lru_cache(maxsize=RECORDS)(parse_family)
    return Controller(
        kind=MODEL_REGISTRY,
        decide=partial(decide, parse=parse),
        invalid=invalid,
        ref_resources=(MODEL_REGISTRY.resource, CONFIG_MAPS, INFERENCE_SERVICE.resource),
        refs=partial(refs, parse=parse),
        indexes=(serving.INDEX, claims.INDEX),
        actions={LOOK: look},
    )


async def run(settings: RegistrySettings, clock: Clock) -> None:
    """The service, until it is cancelled."""
    await run_service(Service("registry", (controller(settings),)), settings, clock)
