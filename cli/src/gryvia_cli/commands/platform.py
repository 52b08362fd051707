"""`gryvia up`: the embedded platform on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gryvia_cli.options import FolderOption
from gryvia_cli.platform.embedded import Platform, PlatformOptions, run_platform
from gryvia_cli.platform.folder import PlatformFolder
from gryvia_cli.session import run
from gryvia_common.clock import SystemClock
from gryvia_common.runtime.logs import configure_logs

PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port of the API server; 0 takes a free one.")
]
PersistOption = Annotated[bool, typer.Option("--persist", help="Keep the objects over a restart.")]
ProcessesOption = Annotated[
    bool, typer.Option("--processes", help="A process for each service instead of one for all.")
]
ImagesOption = Annotated[Path | None, typer.Option("--images", help="images.yaml: what runs for which image.")]
DEFAULT_FOLDER = Path(".gryvia")


def up(
    folder: FolderOption = DEFAULT_FOLDER,
    port: PortOption = 0,
    persist: PersistOption = False,
    processes: ProcessesOption = False,
    images: ImagesOption = None,
) -> None:
    """Start the platform and keep it up until Ctrl-C."""
    options = PlatformOptions(PlatformFolder(folder.absolute()), port, persist, processes, images)

    async def work() -> int:
        out = Console(highlight=False)
        async with signalled() as stop, started(options, out) as platform:
            say_hello(out, platform)
            await stop.wait()
            out.print("stopping")
        return 0

    run(work)


@contextlib.asynccontextmanager
async def signalled() -> AsyncIterator[asyncio.Event]:
    """An event that the first SIGINT or SIGTERM sets; a second one ends the process the usual way."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def on_signal() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, on_signal)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@contextlib.asynccontextmanager
async def started(options: PlatformOptions, out: Console) -> AsyncIterator[Platform]:
    """The platform, its progress on `out` and its logs in a file."""
    clock = SystemClock()
    begun = clock.monotonic()

    def progress(text: str) -> None:
        out.print(f"[dim]{clock.monotonic() - begun:6.2f} s[/dim]  {text}")

    options.folder.logs.mkdir(parents=True, exist_ok=True)
    with (options.folder.logs / "platform.log").open("a", buffering=1) as log:
        configure_logs(stream=log)
        try:
            async with run_platform(options, clock=clock, progress=progress) as platform:
                yield platform
        finally:
            configure_logs(level="warning", format="console", stream=sys.stderr)


def say_hello(out: Console, platform: Platform) -> None:
    config = _short(platform.folder.kubeconfig)
    out.print("The platform is up. In another terminal:")
    out.print(f"  kubectl --kubeconfig {config} get gryviaautotuners -A -w", soft_wrap=True)
    out.print(
        f"  kubectl --kubeconfig {config} apply -f examples/ml-workflow/hyperparameter-tuning.yaml", soft_wrap=True
    )
    out.print("  .venv/bin/gryvia events", soft_wrap=True)
    out.print(f"Logs are in {_short(platform.folder.logs)}. Ctrl-C stops everything.", soft_wrap=True)


def _short(path: Path) -> str:
    """Relative to where the person stands, if that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
