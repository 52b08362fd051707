"""Waiting for a run: each change on a line as it happens, until no run is under way and what was asked for has been acted on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from gryvia_cli.editing import read
from gryvia_cli.options import Output
from gryvia_cli.session import Session
from gryvia_cli.workflow_text import changes, has_ended, steps_of
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json

POLL_SECONDS = 0.5


async def until_ended(
    kube: Kube,
    session: Session,
    name: str,
    before: Json | None = None,
    acted: Callable[[Json], bool] = lambda obj: True,
) -> Json:
    """The object once no run is under way; what happens on standard output, unless that is for a program. `before`: as it was when
    something was asked for; `acted` says whether that has been acted on: an earlier end is not meant."""
    quiet = session.output in (Output.JSON, Output.YAML)
    known = steps_of(before) if before else []
    while True:
        obj = await read(kube, WORKFLOW, session.place, name)
        steps = steps_of(obj)
        if not quiet:
            for line in changes(known, steps):
                print(f"{datetime.now():%H:%M:%S}  {line}", flush=True)
        known = steps
        if has_ended(obj) and acted(obj):
            return obj
        await asyncio.sleep(POLL_SECONDS)
