"""The kinds, made known to a cluster: server-side apply of every CRD, then wait until each is served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gryvia_common.clock import Clock
from gryvia_common.errors import Terminal
from gryvia_common.kinds.catalogue import KINDS
from gryvia_common.kinds.crd import crd
from gryvia_common.kube.client import Kube, KubeSettings
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import CRDS

MANAGER = "gryvia-install"
ESTABLISH_SECONDS = 30.0


@asynccontextmanager
async def connected(settings: KubeSettings, clock: Clock) -> AsyncIterator[Kube]:
    """A client for as long as the block lasts."""
    kube = await Kube.connect(settings, user_agent="gryvia-cli", clock=clock)
    try:
        yield kube
    finally:
        await kube.close()


async def install_crds(kube: Kube, clock: Clock) -> None:
    """Apply all CRDs and return when they are served. Terminal when one is refused or does not come up."""
    deadline = clock.monotonic() + ESTABLISH_SECONDS
    for kind in KINDS:
        applied = await kube.apply(CRDS, crd(kind), manager=MANAGER)
        while not _established(applied):
            if clock.monotonic() > deadline:
                raise Terminal(f"CustomResourceDefinition {metadata(applied)['name']} is not served", reason="CRD")
            await asyncio.sleep(0.05)
            applied = await kube.get(CRDS, "", metadata(applied)["name"])


def _established(obj: Json) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)
