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
from pydantic import ValidationError

from gryvia_cli.bus import connected_bus
from gryvia_cli.options import Output
from gryvia_cli.platform.bus_users import settings_of
from gryvia_cli.platform.crds import connected
from gryvia_cli.platform.folder import PlatformFolder
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.permissions import READER
from gryvia_common.bus.settings import BusSettings
from gryvia_common.clock import SystemClock
from gryvia_common.errors import GryviaError, Terminal, Transient
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings
from gryvia_common.runtime.parsing import describe

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Session:
    """The global options of one invocation; None is "not given"."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    output: Output | None = None
    color: bool = True

    @property
    def place(self) -> str:
        """The namespace to work in."""
        return self.namespace or "default"

    @asynccontextmanager
    async def kube(self) -> AsyncIterator[Kube]:
        """A client. An API server that cannot be reached is a sentence that says how to get one."""
        folder = self._folder()
        if folder is not None and not folder.is_running():
            raise Terminal(
                f"no platform runs in {folder.root}; start it with `gryvia up`, or name another cluster with --kubeconfig",
                reason="NotRunning",
            )
        try:
            async with connected(self._kube_settings(folder), SystemClock()) as kube:
                yield kube
        except Transient as error:
            if "Cannot connect" not in str(error):
                raise
            raise Transient(
                f"the cluster does not answer ({error}); start a platform with `gryvia up`, or name one with --kubeconfig"
            ) from error

    @asynccontextmanager
    async def bus(self) -> AsyncIterator[Bus]:
        """The bus of GRYVIA_NATS_URL, else of the embedded platform. Terminal when there is neither, or nobody answers."""
        async with connected_bus(self._bus_settings(), "gryvia-cli") as bus:
            yield bus

    def _bus_settings(self) -> BusSettings:
        """On the embedded platform as the user that may read events and nothing else."""
        if os.environ.get("GRYVIA_NATS_URL"):
            return BusSettings()
        folder = self._folder()
        url = folder.nats_url() if folder and folder.is_running() else None
        if folder is None or url is None:
            raise Terminal(
                "no platform runs in this folder and GRYVIA_NATS_URL is not set; run `gryvia up`, or name the NATS server",
                reason="NoBus",
            )
        return settings_of(folder.bus_passwords, url, READER)

    def _folder(self) -> PlatformFolder | None:
        """The embedded platform that the options mean; None for any other cluster."""
        if self.kubeconfig is not None:
            named = [self.kubeconfig]
        else:
            named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
        if not named:
            return PlatformFolder.find(Path.cwd())
        folder = PlatformFolder(named[0].absolute().parent)
        return folder if len(named) == 1 and folder.is_ours() else None

    def _kube_settings(self, folder: PlatformFolder | None) -> KubeSettings:
        kubeconfig = self.kubeconfig or (folder.kubeconfig if folder else None)
        return KubeSettings(kubeconfig=kubeconfig, context=self.context)


def run(work: Callable[[], Coroutine[Any, Any, int | None]]) -> None:
    """Run a command's coroutine; its result is the exit code."""
    try:
        code = asyncio.run(work())
    except GryviaError as error:
        print(f"gryvia: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    except ValidationError as error:
        print(f"gryvia: {describe(error, 'environment')}", file=sys.stderr)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(INTERRUPTED) from error
    except BrokenPipeError:
        # `gryvia ... | head`: the reader has what it wanted. Python would complain about the pipe once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    raise typer.Exit(code or 0)
