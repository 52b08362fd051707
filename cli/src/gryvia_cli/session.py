"""What every command needs: which cluster, which namespace, and an event loop that ends in a sentence and an exit code.

Exit codes: 0 done, 1 it failed (the sentence on standard error says what to do), 2 wrong usage, 130 interrupted. A command finds its
platform by --kubeconfig, else KUBECONFIG, else the `.gryvia` folder here or above, else ~/.kube/config.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from gryvia_cli.platform.crds import connected
from gryvia_cli.platform.folder import PlatformFolder
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.settings import BusSettings
from gryvia_common.clock import SystemClock
from gryvia_common.errors import GryviaError, Terminal
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Session:
    """The global options of one invocation."""

    kubeconfig: Path | None = None
    color: bool = True

    def kube_settings(self, context: str | None) -> KubeSettings:
        if self.kubeconfig is not None:
            return KubeSettings(kubeconfig=self.kubeconfig, context=context)
        if not os.environ.get("KUBECONFIG") and (folder := PlatformFolder.find(Path.cwd())):
            return KubeSettings(kubeconfig=folder.kubeconfig, context=context)
        return KubeSettings(context=context)

    @asynccontextmanager
    async def kube(self, context: str | None) -> AsyncIterator[Kube]:
        async with connected(self.kube_settings(context), SystemClock()) as kube:
            yield kube

    @asynccontextmanager
    async def bus(self) -> AsyncIterator[Bus]:
        """The bus of GRYVIA_NATS_URL, else of the embedded platform. Terminal when there is neither, or nobody answers."""
        url = os.environ.get("GRYVIA_NATS_URL") or ""
        if not url:
            folder = PlatformFolder.find(Path.cwd())
            url = (folder.nats_url() if folder else None) or ""
        if not url:
            raise Terminal(
                "no platform runs in this folder and GRYVIA_NATS_URL is not set; run `gryvia up`, or name the NATS server",
                reason="NoBus",
            )
        try:
            async with asyncio.timeout(5):
                bus = await Bus.connect(BusSettings(url=url), name="gryvia-cli", clock=SystemClock())
        except TimeoutError as error:
            raise Terminal(f"NATS at {url} does not answer; is the platform up?", reason="NoBus") from error
        try:
            yield bus
        finally:
            await bus.close()


def run(work: Callable[[], Coroutine[Any, Any, int | None]]) -> None:
    """Run a command's coroutine; its result is the exit code."""
    try:
        code = asyncio.run(work())
    except GryviaError as error:
        print(f"gryvia: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(INTERRUPTED) from error
    except BrokenPipeError:
        # `gryvia ... | head`: the reader has what it wanted.
        sys.stderr.close()
        raise typer.Exit(0) from None
    raise typer.Exit(code or 0)
