"""Where the programs of a real control plane are, and how one of them runs: its output in a file, a clean end.

The programs are built by tools/kube_tools.sh (`make kube-tools`), which alone knows where they lie.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "kube_tools.sh"
_STOP_SECONDS = 10.0


class NotBuilt(Exception):
    """A program is missing; the text says what to run."""


class Failed(Exception):
    """A program ended or did not get ready; the text has its last lines."""


def find_programs() -> Mapping[str, Path]:
    """Name to path of all of them. Builds nothing: raises NotBuilt."""
    done = subprocess.run(["sh", str(SCRIPT), "--where"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotBuilt(done.stderr.strip())
    return {name: Path(path) for name, _, path in (line.partition(" ") for line in done.stdout.splitlines())}


class Program:
    """A running program. Its output goes to `<folder>/<name>.log`."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, env=_environment()
            )

    def check(self) -> None:
        """Failed when it has ended."""
        if (code := self.process.poll()) is not None:
            raise Failed(f"{self.name} ended with code {code}: {self.last_lines()}")

    def last_lines(self, count: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])

    def stop(self) -> None:
        """SIGTERM, then SIGKILL when that takes too long."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def _environment() -> dict[str, str]:
    """Two cores are shared with what is measured: the collector of each program may wait a little longer."""
    return {"GOGC": "200", **os.environ}
