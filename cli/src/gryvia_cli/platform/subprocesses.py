"""Each service as a process of its own, restarted when it dies: `gryvia up --processes`, and what the crash tests kill.

The services get what a container in a cluster would get: an environment. Their output goes to a log file each.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from gryvia_cli.platform.services import EmbeddedService
from gryvia_common.clock import Clock

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
STOP_SECONDS = 10.0


@dataclass(slots=True)
class ServiceProcess:
    """One supervised process; `pid` is None between two lives."""

    service: EmbeddedService
    environment: Mapping[str, str]
    log_file: Path
    pid_file: Path
    clock: Clock
    pid: int | None = None
    restarts: int = field(default=0)

    async def run(self) -> None:
        """Until cancelled; then SIGTERM, and SIGKILL if that is not heeded."""
        log = structlog.get_logger("platform")
        pause = FIRST_PAUSE
        while True:
            started = self.clock.monotonic()
            code = await self._live()
            if self.clock.monotonic() - started > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            log.warning("service process ended", service=self.service.name, code=code, restart_in_seconds=pause)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
            self.restarts += 1

    async def _live(self) -> int:
        with self.log_file.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self.service.package,
                env={**os.environ, **self.environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.pid = process.pid
        self.pid_file.write_text(f"{process.pid}\n")
        try:
            return await process.wait()
        finally:
            self.pid = None
            if process.returncode is None:
                await _stop(process)
            self.pid_file.unlink(missing_ok=True)


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def end_leftovers(folder: Path) -> None:
    """The services of a platform that was killed: they would work for a cluster that is no more, for ever. A number is believed
    only while its process runs one of ours and was given this folder."""
    for pid in await asyncio.to_thread(_leftovers, folder):
        structlog.get_logger("platform").warning("service process left behind", pid=pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _leftovers(folder: Path) -> list[int]:
    found = []
    for record in folder.glob("*.pid"):
        with contextlib.suppress(OSError, ValueError):
            pid = int(record.read_text())
            if _is_leftover(pid, folder):
                found.append(pid)
        record.unlink(missing_ok=True)
    return found


def _is_leftover(pid: int, folder: Path) -> bool:
    """Linux only: elsewhere nothing is found."""
    process = Path("/proc") / str(pid)
    return str(folder.absolute()).encode() in (process / "environ").read_bytes()
