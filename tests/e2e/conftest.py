"""A whole embedded platform for a test: real NATS, real pods, the services in this process or in their own."""

from __future__ import annotations

import asyncio
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
    async with run_platform(PlatformOptions(PlatformFolder(folder), **options)) as platform:
        async with connected(platform.kube, SystemClock()) as kube:
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
