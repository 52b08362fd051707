"""`python -m bench [name]`: every measure, or the one of that name, as one JSON object a line; exit code 1 if one does not hold.

A measure is a module beside this one with NAMES, what it prints, and `run()`, which yields {"bench", "value", "unit", "goal",
"holds"}; `goal` is null where there is none. NAMES is read without importing: one measure must not wait for the libraries of all.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
USAGE = 2


def main(arguments: Sequence[str], folder: Path = HERE) -> int:
    """The exit code."""
    measures = {path: names_of(path) for path in sorted(folder.glob("*.py")) if path.name != "__main__.py"}
    known = sorted(name for names in measures.values() for name in names)
    wanted = arguments[0] if arguments else None
    if len(arguments) > 1 or (wanted is not None and wanted not in known):
        print(f"bench: no measure is called {' '.join(arguments)!r}; there are {', '.join(known)}", file=sys.stderr)
        return USAGE
    holds = True
    for path, names in measures.items():
        if wanted is not None and wanted not in names:
            continue
        for line in _run(path):
            if wanted in (None, line["bench"]):
                print(json.dumps(line), flush=True)
                holds &= bool(line["holds"])
    return 0 if holds else 1


def names_of(path: Path) -> tuple[str, ...]:
    """The NAMES of a measure. ValueError when it has none."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["NAMES"]:
            found: tuple[str, ...] = tuple(ast.literal_eval(node.value))
            return found
    raise ValueError(f"{path} has no NAMES")


def _run(path: Path) -> Iterable[dict[str, Any]]:
    spec = importlib.util.spec_from_file_location(f"bench_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    lines: Iterable[dict[str, Any]] = module.run()
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
