"""platform-ready: seconds from the command `gryvia up` to the last service being ready, installed and in a new folder; median of 5.
platform-stop: seconds from SIGTERM to the end of the process, the median of the same.

    python -m bench.platform_start [starts]
"""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Set
from pathlib import Path

from bench.results import Line, line, run_measure

NAMES = ("platform-ready", "platform-stop")
STARTS = 5
READY_GOAL = 5.0
STOP_GOAL = 5.0


def run(wanted: Set[str] = frozenset(NAMES), starts: int = STARTS) -> Iterable[Line]:
    times = [_one() for _ in range(starts)]
    yield line("platform-ready", statistics.median(ready for ready, _ in times), "s", READY_GOAL)
    yield line("platform-stop", statistics.median(stop for _, stop in times), "s", STOP_GOAL)


def _one() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        command = [sys.executable, "-m", "gryvia_cli", "up", "--folder", str(Path(folder) / ".gryvia")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for text in process.stdout:
                if "The platform is up" in text:
                    break
            ready = time.monotonic() - began
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
            code = process.wait()
            stop = time.monotonic() - began - ready
    assert code == 0, f"gryvia up ended with {code}"
    return ready, stop


if __name__ == "__main__":
    run_measure(run(starts=int(sys.argv[1]) if len(sys.argv) > 1 else STARTS))
