"""Where the node keeps things under its data directory.

pods/<uid>/volumes/<volume>, pods/<uid>/containers/<name>/{<attempt>.log, work, termination-log, process.json},
volumes/<persistent volume>, names/ for what pods resolve, bin/ for interpreters, hook/ for the Python hook.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    root: Path

    @property
    def pods(self) -> Path:
        return self.root / "pods"

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def names(self) -> Path:
        return self.root / "names"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    def pod(self, uid: str) -> Path:
        return self.pods / uid

    def volume(self, uid: str, name: str) -> Path:
        return self.pod(uid) / "volumes" / name

    def persistent(self, volume_name: str) -> Path:
        return self.root / "volumes" / volume_name

    def container(self, uid: str, name: str) -> Path:
        return self.pod(uid) / "containers" / name

    def log(self, uid: str, name: str, attempt: int) -> Path:
        return self.container(uid, name) / f"{attempt}.log"
