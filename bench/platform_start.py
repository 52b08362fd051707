"""platform-ready: seconds from the command `gryvia up` to the last service being ready, installed and in a new folder; median of 5.
platform-stop: seconds from SIGTERM to the end of the process, the median of the same.

    python bench/platform_start.py [starts]
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

NAMES = ("platform-ready", "platform-stop")
STARTS = 5
READY_GOAL = 5.0
STOP_GOAL = 5.0


def run(starts: int = STARTS) -> Iterable[dict[str, object]]:
    times = [_one() for _ in range(starts)]
    yield _line("platform-ready", statistics.median(ready for ready, _ in times), READY_GOAL)
    yield _line("platform-stop", statistics.median(stop for _, stop in times), STOP_GOAL)


def _one() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        command = [sys.executable, "-m", "gryvia_cli", "up", "--folder", str(Path(folder) / ".gryvia")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if "The platform is up" in line:
                    break
            ready = time.monotonic() - began
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
            code = process.wait()
            stop = time.monotonic() - began - ready
    assert code == 0, f"gryvia up ended with {code}"
    return ready, stop


def _line(bench: str, value: float, goal: float) -> dict[str, object]:
    return {"bench": bench, "value": round(value, 2), "unit": "s", "goal": goal, "holds": value <= goal}


if __name__ == "__main__":
    for result in run(int(sys.argv[1]) if len(sys.argv) > 1 else STARTS):
        print(json.dumps(result), flush=True)
