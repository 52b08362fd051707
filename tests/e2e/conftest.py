"""A whole embedded platform for a test: real NATS, real pods, the services in this process or in their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gryvia_cli.platform.crds import connected
from gryvia_cli.platform.embedded import Platform, PlatformOptions, run_platform
from gryvia_cli.platform.folder import PlatformFolder
from gryvia_common.clock import SystemClock
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json


@dataclass(frozen=True, slots=True)
class Running:
    """A platform and an admin's client of it."""

    platform: Platform
    kube: Kube

    async def until(
        self, read: Callable[[], Awaitable[Json]], wanted: Callable[[Json], bool], *, seconds: float = 60
    ) -> Json:
        """The first state that is as wanted; the bound is for a hang, and its error shows the last state."""
        state: Json = {}
        try:
            async with asyncio.timeout(seconds):
                while not wanted(state := await read()):
                    await asyncio.sleep(0.05)
        except TimeoutError as error:
            raise AssertionError(f"not as wanted after {seconds:.0f} s: {state.get('status')}") from error
        return state


@asynccontextmanager
async def start(folder: Path, **options: Any) -> AsyncIterator[Running]:
    async with (
        run_platform(PlatformOptions(PlatformFolder(folder), **options)) as platform,
        connected(platform.kube, SystemClock()) as kube,
    ):
        yield Running(platform, kube)
        assert platform.nats is not None
        refused = [line for line in platform.nats.log_file.read_text().splitlines() if "Violation" in line]
        assert refused == []


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    """All services in this process."""
    async with start(tmp_path / ".gryvia") as platform:
        yield platform


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[Running]:
    """A process for each service, restarted when it dies."""
    async with start(tmp_path / ".gryvia", processes=True) as platform:
        yield platform


class Up:
    """`gryvia up` as a person runs it: a process of its own. `output` is what it has said so far."""

    def __init__(self, folder: Path, *options: str, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.output = ""
        command = [sys.executable, "-m", "gryvia_cli", "up", "--folder", str(folder), *options]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(environment or {})},
        )

    def ready(self) -> Up:
        """Returns once it says that it is up; AssertionError with its words when it ends instead."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line
            if "Ctrl-C stops everything" in line:
                return self
        raise AssertionError(f"it ended with {self.process.wait()}: {self.output}")

    def end(self, number: signal.Signals | None = signal.SIGTERM) -> int:
        """Send the signal, wait for the end; the exit code."""
        if number is not None:
            self.process.send_signal(number)
        self.output += self.process.communicate(timeout=60)[0]
        return self.process.returncode

    def __enter__(self) -> Up:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end()


def processes_of(folder: Path) -> dict[int, str]:
    """Every process that works in or for this folder, with its command line."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder).encode() in (entry / "environ").read_bytes() or str(folder) in command:
                found[int(entry.name)] = command
    return found


@pytest.fixture(scope="session")
def start_up() -> type[Up]:
    """`start_up(folder, *options)`; see Up."""
    return Up


@pytest.fixture(scope="session")
def working_for() -> Callable[[Path], dict[int, str]]:
    """See processes_of."""
    return processes_of
