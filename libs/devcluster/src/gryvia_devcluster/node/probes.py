"""Startup, readiness and liveness probes: one attempt, and the counting of thresholds.

A probe task sleeps for its period and asks; there is nothing to listen to. Startup runs first and holds the other two back.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from gryvia_devcluster.clock import Clock
from gryvia_devcluster.node.process.spawner import Spawn, Spawner, StartError
from gryvia_devcluster.types import Json

_EXEC_OUTPUT = 10 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """Where to probe: the pod's address, its named ports, and the running process to run commands beside."""

    ip: str
    ports: dict[str, int]
    pid: int
    spawn: Spawn
    folder: Path


@dataclass(frozen=True, slots=True)
class Answer:
    ok: bool
    detail: str = ""


@dataclass(slots=True)
class Threshold:
    """Flips when as many answers in a row as the probe asks for disagree with the present verdict. Pure."""

    success: int
    failure: int
    verdict: bool | None = None
    _streak: int = 0
    _last: bool | None = None

    def take(self, ok: bool) -> bool:
        """Count one answer; True if the verdict changed (or was reached for the first time)."""
        self._streak = self._streak + 1 if ok == self._last else 1
        self._last = ok
        if ok == self.verdict or self._streak < (self.success if ok else self.failure):
            return False
        self.verdict = ok
        return True


async def attempt(probe: Json, target: Target, spawner: Spawner) -> Answer:
    """One try within the probe's timeout."""
    seconds = float(probe.get("timeoutSeconds", 1))
    try:
        async with asyncio.timeout(seconds):
            if http := probe.get("httpGet"):
                return await _http(http, target)
            if tcp := probe.get("tcpSocket"):
                return await _tcp(tcp, target)
            if command := probe.get("exec"):
                return await run_beside(command["command"], target, spawner)
            return Answer(False, "this probe has no exec, httpGet or tcpSocket (grpc is not supported)")
    except TimeoutError:
        return Answer(False, f"command or request timed out after {seconds:g}s")


async def _http(action: Json, target: Target) -> Answer:
    host, port = action.get("host") or target.ip, _port(action["port"], target)
    url = f"{action.get('scheme', 'HTTP').lower()}://{host}:{port}/{action.get('path', '/').lstrip('/')}"
    headers = {h["name"]: h["value"] for h in action.get("httpHeaders") or ()}
    headers.setdefault("User-Agent", "kube-probe/devcluster")
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=unverified, force_close=True)
    try:
        async with aiohttp.ClientSession(connector=connector) as session, session.get(url, headers=headers) as response:
            if 200 <= response.status < 400:
                return Answer(True)
            return Answer(False, f"HTTP probe failed with statuscode: {response.status}")
    except (aiohttp.ClientError, OSError) as error:
        return Answer(False, f'Get "{url}": {error}')


async def _tcp(action: Json, target: Target) -> Answer:
    host, port = action.get("host") or target.ip, _port(action["port"], target)
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return Answer(False, f"dial tcp {host}:{port}: {error}")
    writer.close()
    return Answer(True)


async def run_beside(command: list[str], target: Target, spawner: Spawner) -> Answer:
    """Run a command in the container, with its environment and its view of the file system."""
    output = target.folder / "exec.log"
    output.unlink(missing_ok=True)
    spawn = target.spawn
    beside = Spawn(command, spawn.env, spawn.cwd, str(output), spawn.hostname, inside=target.pid)
    try:
        process = await spawner.start(beside)
    except StartError as error:
        return Answer(False, str(error))
    try:
        code = await process.ended
    except asyncio.CancelledError:
        process.kill()
        raise
    with output.open("rb") as file:
        return Answer(code == 0, file.read(_EXEC_OUTPUT).decode(errors="replace").strip())


def _port(port: int | str, target: Target) -> int:
    if isinstance(port, int):
        return port
    return int(port) if port.isdecimal() else target.ports.get(port, 0)


Ask = Callable[[Json], Awaitable[Answer]]


async def watch_probe(probe: Json, ask: Ask, clock: Clock, on_change: Callable[[bool, Answer], None]) -> None:
    """Ask forever; `on_change(verdict, answer)` each time a threshold is crossed."""
    threshold = Threshold(int(probe.get("successThreshold", 1)), int(probe.get("failureThreshold", 3)))
    await clock.sleep(float(probe.get("initialDelaySeconds", 0)))
    while True:
        answer = await ask(probe)
        if threshold.take(answer.ok):
            on_change(answer.ok, answer)
        await clock.sleep(float(probe.get("periodSeconds", 10)))
