"""The `.gryvia` folder: everything an embedded platform leaves on disk, and who may use it.

One platform a folder, held by a lock that dies with its process; what other commands need to find the platform (kubeconfig,
the bus's address) lies there too, readable by its owner only. A folder that is not one of ours is never written to.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gryvia_common.errors import Terminal

FORMAT = 1
CONTENTS = frozenset({"cluster", "format", "kubeconfig", "logs", "nats", "run"})


@dataclass(frozen=True, slots=True)
class PlatformFolder:
    """Paths below `root`; see the module's docstring."""

    root: Path

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def nats_data(self) -> Path:
        return self.root / "nats"

    @property
    def cluster_data(self) -> Path:
        return self.root / "cluster"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def bus_passwords(self) -> Path:
        return self.run / "bus"

    @property
    def address_file(self) -> Path:
        return self.run / "platform.json"

    @classmethod
    def find(cls, start: Path) -> PlatformFolder | None:
        """The folder of a platform at `start` or above it."""
        for place in (start, *start.parents):
            folder = cls(place / ".gryvia")
            if folder.kubeconfig.exists():
                return folder
        return None

    def is_ours(self) -> bool:
        """Whether a platform has ever been here."""
        return (self.root / "format").is_file()

    def is_running(self) -> bool:
        """Whether the process that said it was up is still there."""
        pid = self._address().get("pid")
        if not isinstance(pid, int):
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def prepare(self) -> None:
        """Make the folder and what belongs in it. Terminal when it is damaged or not ours."""
        with self.usable():
            self.root.mkdir(parents=True, exist_ok=True)
            self._check_format()
            for path in (self.logs, self.run, self.cluster_data, self.nats_data):
                path.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Make the folder ready and keep it ours. Terminal when it is damaged, not ours, or held by a running platform."""
        self.prepare()
        with self.usable():
            lock = (self.run / "lock").open("a+")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise Terminal(
                    f"a platform is running in {self.root} already; stop it first, or pass another --folder",
                    reason="Locked",
                ) from error
            try:
                yield
            finally:
                self.address_file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def usable(self) -> Iterator[None]:
        """An error of the file system within the block becomes Terminal: what is wrong with which file, and the way out."""
        try:
            yield
        except OSError as error:
            if error.errno is None:
                # A time limit, not the file system.
                raise
            trouble = "is a file, not a folder" if isinstance(error, FileExistsError) else str(error.strerror).lower()
            what = f"{error.filename}: {trouble}" if error.filename else trouble
            raise Terminal(
                f"cannot use the folder {self.root}: {what}; move it away or pass --folder", reason="Folder"
            ) from error

    def write_address(self, *, nats_url: str, pid: int) -> None:
        """Where the running platform is, for the other commands."""
        descriptor = os.open(self.address_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({"natsUrl": nats_url, "pid": pid}, file)

    def nats_url(self) -> str | None:
        """The bus of the running platform; None when none runs here."""
        url = self._address().get("natsUrl")
        return url if isinstance(url, str) else None

    def _address(self) -> dict[str, object]:
        try:
            found = json.loads(self.address_file.read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _check_format(self) -> None:
        marker = self.root / "format"
        if not marker.exists():
            strangers = sorted({path.name for path in self.root.iterdir()} - CONTENTS)
            if strangers:
                raise Terminal(
                    f"{self.root} is no folder of a platform: it holds {strangers[0]!r}; pass an empty or new --folder",
                    reason="Folder",
                )
            marker.write_text(f"{FORMAT}\n")
            return
        text = marker.read_text(errors="replace").strip()
        if text != str(FORMAT):
            raise Terminal(
                f"{marker} says {text[:40]!r} where {FORMAT} is expected: the folder is damaged or of another version; "
                f"delete {self.root} (what runs in it is lost) or pass another --folder",
                reason="Folder",
            )
