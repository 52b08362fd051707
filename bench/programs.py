"""Programs under measure: started, ended with the block, and what they have used so far."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

_TICK = os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def python(*command: str, log: Path, **environment: str) -> AsyncIterator[Process]:
    """`python <command>` in this environment plus `environment`; both outputs go to `log`."""
    with log.open("ab") as output:
        started = await asyncio.create_subprocess_exec(
            sys.executable, *command, env={**os.environ, **environment}, stdin=DEVNULL, stdout=output, stderr=output
        )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.terminate()
        await started.wait()


async def text_of(file: Path, program: Process) -> str:
    """What a program writes (a whole line) when it is ready. RuntimeError when it ends instead."""
    while not file.exists() or not (text := file.read_text()).endswith("\n"):
        if program.returncode is not None:
            raise RuntimeError(f"a program under measure ended with {program.returncode}; see {file.parent}")
        await asyncio.sleep(0.02)
    return text


def cpu_seconds(pid: int) -> float:
    """Of all its threads, user and system, since it began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def resident(pid: int) -> float:
    """Resident memory in MB of 10**6 bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024 / 1e6


async def samples(port: int) -> list[Sample]:
    """What the /metrics of a service on this machine says now."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        text = await answer.text()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]
