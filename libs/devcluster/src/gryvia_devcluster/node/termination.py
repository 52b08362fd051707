"""What a container leaves behind: its termination message.

The kubelet reads at most the last 4096 bytes of the file, and with FallbackToLogsOnError, when the file is empty and the
container failed, the last 2048 bytes or 80 lines of its output.
"""

from __future__ import annotations

from pathlib import Path

from gryvia_devcluster.types import Json

FILE_LIMIT = 4096
LOG_LIMIT = 2048
LOG_LINES = 80


def termination_message(container: Json, file: Path, log: Path, exit_code: int) -> str:
    message = _tail(file, FILE_LIMIT)
    fallback = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    if message or exit_code == 0 or not fallback:
        return message
    return "".join(_tail(log, LOG_LIMIT).splitlines(keepends=True)[-LOG_LINES:])


def _tail(path: Path, limit: int) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - limit, 0))
            return file.read(limit).decode(errors="replace")
    except OSError:
        return ""
