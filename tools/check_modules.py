"""The size of modules: none above 400 lines, the median near 150, and no name that says nothing.

The limits are those of docs/style.md. Prints what breaks them; exit code 1 if anything does.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 400
MEDIAN = 160
SERVICE_LIMIT = 950
LARGER = {"workflow": 2250}
"""Six types of steps, loops and outputs, each a module of its own; what a person asks of a run."""

EMPTY_NAMES = frozenset({"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"})


def main() -> int:
    sizes = {
        path: len(path.read_text().splitlines())
        for root in ("libs", "services", "cli")
        for path in sorted((ROOT / root).rglob("src/**/*.py"))
    }
    wrong = [f"{path.relative_to(ROOT)}: {size} lines, at most {LIMIT}" for path, size in sizes.items() if size > LIMIT]
    wrong += [f"{path.relative_to(ROOT)}: the name says nothing" for path in sizes if path.stem in EMPTY_NAMES]
    written = [size for path, size in sizes.items() if path.name != "__init__.py"]
    median = statistics.median(written)
    if median > MEDIAN:
        wrong.append(f"the median module has {median:.0f} lines, at most {MEDIAN}")
    for name in ("jobs", "tuner", "workflow", "registry"):
        total = sum(size for path, size in sizes.items() if (ROOT / "services" / name) in path.parents)
        limit = LARGER.get(name, SERVICE_LIMIT)
        if total > limit:
            wrong.append(f"services/{name}: {total} lines, the limit is {limit}")
    for line in wrong:
        print(line)
    print(f"{len(written)} modules, median {median:.0f} lines, largest {max(written)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
