"""The platform in the foreground of a terminal: its progress, its log file, its signals, and what to do with it once it is up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console

from gryvia_cli.kubectl import gryvia_command, kubectl_command, short
from gryvia_cli.platform.embedded import Platform, PlatformOptions, run_platform
from gryvia_cli.platform.folder import PlatformFolder
from gryvia_common.bus.permissions import READER
from gryvia_common.clock import SystemClock
from gryvia_common.runtime.logs import configure_logs

IMPATIENT_SECONDS = 1.0
EXAMPLE = Path("examples/ml-workflow/hyperparameter-tuning.yaml")


async def stay_up(options: PlatformOptions, out: Console) -> int:
    """Until a signal; the exit code."""
    async with signalled() as stop, started(options, out, stop) as platform:
        if platform is not None:
            say_hello(out, platform)
            await stop.wait()
        out.print("stopping")
    return 0


@contextlib.asynccontextmanager
async def signalled() -> AsyncIterator[asyncio.Event]:
    """An event that the first SIGINT, SIGTERM or SIGHUP (a closed terminal; not under nohup) sets. A later one ends the process
    the usual way, but not one that comes at once: some senders signal the process and its group."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    first: list[float] = []

    def on_signal(number: signal.Signals) -> None:
        stop.set()
        first.append(loop.time())
        if loop.time() - first[0] > IMPATIENT_SECONDS:
            loop.remove_signal_handler(number)
            os.kill(os.getpid(), number)

    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@contextlib.asynccontextmanager
async def started(options: PlatformOptions, out: Console, stop: asyncio.Event) -> AsyncIterator[Platform | None]:
    """The platform, its progress on `out` and its logs in a file; None when `stop` came before it was up."""
    clock = SystemClock()
    begun = clock.monotonic()

    def progress(text: str) -> None:
        out.print(f"[dim]{clock.monotonic() - begun:6.2f} s[/dim]  {text}")

    options.folder.prepare()
    with _log_file(options.folder) as log:
        configure_logs(stream=log)
        try:
            async with contextlib.AsyncExitStack() as stack:
                start = stack.enter_async_context(run_platform(options, clock=clock, progress=progress))
                yield await _unless(stop, start)
        finally:
            configure_logs(level="warning", format="console", stream=sys.stderr)


async def _unless(stop: asyncio.Event, start: Coroutine[Any, Any, Platform]) -> Platform | None:
    """What `start` gives, or None once `stop` is set; `start` is cancelled then and has cleaned up."""
    task: asyncio.Task[Platform] = asyncio.create_task(start)
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return None
        return task.result()
    finally:
        stopped.cancel()


@contextlib.contextmanager
def _log_file(folder: PlatformFolder) -> Iterator[TextIO]:
    with folder.usable():
        file = (folder.logs / "platform.log").open("a", buffering=1)
    with file:
        yield file


def say_hello(out: Console, platform: Platform) -> None:
    """What to type in another terminal."""
    config = short(platform.folder.kubeconfig)
    out.print("\nThe platform is up. In another terminal:")
    kubectl, gryvia = kubectl_command(), gryvia_command()
    lines = [f"{gryvia} --kubeconfig {config} status", f"{gryvia} --kubeconfig {config} events"]
    if kubectl is not None:
        lines.insert(0, f"{kubectl} --kubeconfig {config} get gryviaautotuners -A -w")
        if EXAMPLE.exists():
            lines.insert(1, f"{kubectl} --kubeconfig {config} apply -f {EXAMPLE}")
    for line in lines:
        out.print(f"  {line}", soft_wrap=True)
    if kubectl is None:
        out.print("There is no kubectl here; `make install` puts one into .venv/bin.", soft_wrap=True)
    out.print(f"Events for a program of yours: GRYVIA_NATS_URL={_reader_url(platform)}", soft_wrap=True)
    out.print(f"Logs are in {short(platform.folder.logs)}.", soft_wrap=True)
    out.print("Ctrl-C stops everything.")


def _reader_url(platform: Platform) -> str:
    """For a shell: it reads the password, which is on no screen then."""
    if platform.nats is None:
        return platform.nats_url
    secret = short(platform.folder.bus_passwords / READER)
    return f"nats://{READER}:$(cat {secret})@{platform.nats_url.removeprefix('nats://')}"
