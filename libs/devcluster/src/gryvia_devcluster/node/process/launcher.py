"""The program that starts pods' processes: small, single-threaded, forked from cheaply.

The node speaks JSON lines with it over the socket on file descriptor 0. It exists because the node's own process has
threads and a large heap, so neither a fork with set-up code (namespaces, mounts) nor hundreds of spawns would be safe
and cheap there. Invariants: every process leads a session of its own; what is left of a session is killed before
its leader is reaped, so a recycled number is never hit; when the node's end of the socket closes, everything dies.
Run as `python -I -S launcher.py <scratch directory>`: standard library only.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gryvia_devcluster.node.process import sandbox
else:  # The package's own __init__ would load the whole node into every launcher.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import sandbox

Message = dict[str, Any]


class Launcher:
    def __init__(self, control: socket.socket, scratch: str) -> None:
        self._control = control
        self._libc = sandbox.Libc()
        self._root = os.path.join(scratch, "root")
        os.makedirs(self._root, exist_ok=True)
        self._selector = selectors.DefaultSelector()
        self._pids: dict[int, int] = {}
        self._ids: dict[int, int] = {}
        self._starting: dict[int, tuple[int, int, str]] = {}
        self._received = b""
        self._mode = ""

    def run(self) -> None:
        self._libc.prctl(sandbox.PR_SET_CHILD_SUBREAPER, 1)
        self._mode = sandbox.probe(self._libc, self._root)
        wake, self._woken = socket.socketpair()
        wake.setblocking(False)
        self._woken.setblocking(False)
        signal.set_wakeup_fd(wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        self._selector.register(self._control, selectors.EVENT_READ, "control")
        self._selector.register(self._woken, selectors.EVENT_READ, "child")
        gc.freeze()
        self._send({"event": "ready", "mode": self._mode})
        while self._step():
            pass
        for pid in list(self._ids):
            self._end_session(pid)

    def _step(self) -> bool:
        for key, _ in self._selector.select():
            if key.data == "control":
                if not self._read_control():
                    return False
            elif key.data == "child":
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
                self._reap()
            elif key.fd in self._starting:  # a process that has ended in this very turn is finished already
                self._finish_start(key.fd)
        return True

    def _read_control(self) -> bool:
        try:
            chunk = self._control.recv(1 << 20)
        except ConnectionResetError:
            return False
        if not chunk:
            return False
        *lines, self._received = (self._received + chunk).split(b"\n")
        for line in lines:
            self._handle(json.loads(line))
        return True

    def _handle(self, message: Message) -> None:
        if message["op"] == "signal":
            pid = self._pids.get(message["id"])
            if pid is not None:
                self._signal(pid, message["signal"], group=message["group"])
            return
        reader, writer = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            self._become(message, writer)
        os.close(writer)
        self._pids[message["id"]] = pid
        self._ids[pid] = message["id"]
        self._starting[reader] = (message["id"], pid, message.get("record") or "")
        self._selector.register(reader, selectors.EVENT_READ, "start")

    def _become(self, message: Message, report: int) -> None:
        """In the child: turn into the process asked for, or say why not and end."""
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            output = os.open(message["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            if "inside" in message:
                if self._mode and message["sandboxed"]:
                    sandbox.join(self._libc, message["inside"], self._mode == "user")
            elif self._mode and message["sandboxed"]:
                sandbox.enter(self._libc, self._mode == "user")
                self._libc.sethostname(message["hostname"])
                sandbox.build_root(self._libc, self._root, message["mounts"])
            self._libc.prctl(sandbox.PR_SET_PDEATHSIG, signal.SIGKILL)
            os.makedirs(message["cwd"], exist_ok=True)
            os.chdir(message["cwd"])
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.umask(0o022)
            os.execvpe(message["argv"][0], message["argv"], message["env"])
        except OSError as error:
            os.write(report, json.dumps(describe(error, message["argv"][0])).encode())
        finally:
            os._exit(127)

    def _finish_start(self, reader: int) -> None:
        """The pipe closes at exec; what came through it before is the reason why there was none."""
        problem = os.read(reader, 4096)
        self._selector.unregister(reader)
        os.close(reader)
        number, pid, record = self._starting.pop(reader)
        if problem:
            self._send({"event": "failed", "id": number, "error": json.loads(problem)})
            return
        if record:
            with open(record, "w") as file:
                json.dump({"pid": pid, "start": start_time(pid)}, file)
        self._send({"event": "started", "id": number, "pid": pid})

    def _reap(self) -> None:
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            pid = found.si_pid
            number = self._ids.pop(pid, None)
            if number is not None:
                for reader, (starting, _, _) in list(self._starting.items()):
                    if starting == number:
                        self._finish_start(reader)
                del self._pids[number]
                self._send({"event": "exited", "id": number, "code": self._end_session(pid)})
            else:
                os.waitpid(pid, 0)

    def _end_session(self, leader: int) -> int:
        """Kill and reap what is left around a leader that has ended (its orphans are our children, as we are their
        subreaper); the leader's exit code."""
        self._signal(leader, signal.SIGKILL)
        code = 0
        while True:
            try:
                pid, status = os.waitpid(-leader, 0)
            except ChildProcessError:
                return code
            if pid == leader:
                code = os.waitstatus_to_exitcode(status)

    def _signal(self, pid: int, number: int, group: bool = True) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if group:
                os.killpg(pid, number)
            else:
                os.kill(pid, number)

    def _send(self, message: Message) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._control.sendall(json.dumps(message).encode() + b"\n")


def describe(error: OSError, program: str) -> str:
    """The operating system's reason, in the words a container runtime uses for a program that is not there."""
    where = os.fsdecode(error.filename) if error.filename else ""
    if isinstance(error, FileNotFoundError) and where.endswith(program):
        missing = "no such file or directory" if "/" in program else "executable file not found in $PATH"
        return f'exec: "{program}": {missing}'
    return f"{where}: {error.strerror}" if where else str(error.strerror)


def start_time(pid: int) -> int:
    """Field 22 of /proc/<pid>/stat: with the number it names a process for good."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except FileNotFoundError:
        return 0


if __name__ == "__main__":
    Launcher(socket.socket(fileno=os.dup(0)), sys.argv[1]).run()
