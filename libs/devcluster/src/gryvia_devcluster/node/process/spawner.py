"""The node's side of the launcher: start a process, wait for it, signal it, run a command beside it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gryvia_devcluster.node.process.sandbox import Mount

_GONE = "the launcher of this node has ended"
_LAUNCHER = Path(__file__).with_name("launcher.py")


class StartError(Exception):
    """The process could not be started: no such program, no permission. The message is the operating system's."""


@dataclass(frozen=True, slots=True)
class Spawn:
    """What to run. `record` is the file for its pid and start time; `inside` the pid whose namespaces it joins."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    output: str
    hostname: str = "pod"
    mounts: list[Mount] = field(default_factory=list)
    record: str = ""
    inside: int | None = None


class Process:
    """A started process. `ended` gives its exit code, negative for a signal as in the subprocess module."""

    def __init__(self, number: int, spawner: Spawner) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.started: asyncio.Future[int] = loop.create_future()
        self.ended: asyncio.Future[int] = loop.create_future()
        self._spawner = spawner

    @property
    def pid(self) -> int:
        return self.started.result()

    def signal(self, number: signal.Signals, *, group: bool = True) -> None:
        if not self.ended.done():
            self._spawner.send({"op": "signal", "id": self.number, "signal": int(number), "group": group})

    def kill(self) -> None:
        """End the process and everything it started in its session."""
        self.signal(signal.SIGKILL)


class Spawner:
    """Use as an async context manager; leaving it kills every process it started."""

    def __init__(self, scratch: Path, *, sandboxed: bool | None = None) -> None:
        """`sandboxed` None: namespaces where the machine allows them."""
        self._scratch = scratch
        self._wanted = sandboxed
        self._processes: dict[int, Process] = {}
        self._sequence = 0
        self.sandboxed = False

    async def __aenter__(self) -> Spawner:
        self._scratch.mkdir(parents=True, exist_ok=True)
        ours, theirs = socket.socketpair()
        try:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                str(_LAUNCHER),
                str(self._scratch),
                stdin=theirs.fileno(),
                env={},
                start_new_session=True,
            )
        finally:
            theirs.close()
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        ready = json.loads(await self._reader.readline())
        self.sandboxed = bool(ready["mode"]) and self._wanted is not False
        if self._wanted and not self.sandboxed:
            raise StartError("this machine does not allow user and mount namespaces")
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._child.wait()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def watch(self) -> None:
        """Raises RuntimeError when the launcher ends by itself: the node cannot go on without it."""
        await asyncio.shield(self._task)
        raise RuntimeError(_GONE)

    @property
    def launcher_pid(self) -> int:
        return self._child.pid

    async def start(self, spawn: Spawn) -> Process:
        """Returns when the program runs. Raises StartError."""
        if self._task.done():
            raise StartError(_GONE)
        self._sequence += 1
        process = Process(self._sequence, self)
        self._processes[process.number] = process
        message = {key: value for key, value in asdict(spawn).items() if key != "inside"}
        if spawn.inside is not None:
            message["inside"] = spawn.inside
        self.send({"op": "start", "id": process.number, "sandboxed": self.sandboxed, **message})
        await asyncio.shield(process.started)
        return process

    def send(self, message: dict[str, Any]) -> None:
        if not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")

    async def _listen(self) -> None:
        while line := await self._reader.readline():
            self._on_message(json.loads(line))
        for process in list(self._processes.values()):
            self._on_message({"event": "failed", "id": process.number, "error": _GONE})
            self._on_message({"event": "exited", "id": process.number, "code": -int(signal.SIGKILL)})

    def _on_message(self, message: dict[str, Any]) -> None:
        process = self._processes[message["id"]]
        if message["event"] == "started":
            process.started.set_result(message["pid"])
        elif message["event"] == "failed" and not process.started.done():
            process.started.set_exception(StartError(message["error"]))
        elif message["event"] == "exited":
            del self._processes[process.number]
            process.ended.set_result(message["code"])
