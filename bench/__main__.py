"""`python -m bench [name]`: every measure, or the one of that name, as one JSON object a line; exit code 1 if one does not hold.

A measure is a module beside this one with NAMES, what it prints, and `run(wanted)`, which yields {"bench", "value", "unit", "goal",
"holds"} and measures only what is wanted; `goal` is null where there is none. NAMES is read without importing: one measure must not
wait for the libraries of all.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

from bench.results import Line, end_like_interrupted, show

HERE = Path(__file__).parent
USAGE = 2


def main(arguments: Sequence[str], folder: Path = HERE) -> int:
    """The exit code."""
    found = measures(folder)
    known = {name for names in found.values() for name in names}
    wanted = set(arguments) or known
    if len(arguments) > 1 or not wanted <= known:
        print(
            f"bench: no measure is called {' '.join(arguments)!r}; there are {', '.join(sorted(known))}",
            file=sys.stderr,
        )
        return USAGE
    return 0 if show(_lines(found, wanted)) else 1


def measures(folder: Path = HERE) -> dict[Path, tuple[str, ...]]:
    """Each measure's module and what it prints."""
    found = {path: names_of(path) for path in sorted(folder.glob("*.py")) if path.stem != "__main__"}
    return {path: names for path, names in found.items() if names}


def names_of(path: Path) -> tuple[str, ...]:
    """The NAMES of a measure, empty for a module that has no `run`. ValueError for a measure without names."""
    body = ast.parse(path.read_text()).body
    for node in body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["NAMES"]:
            found: tuple[str, ...] = tuple(ast.literal_eval(node.value))
            return found
    if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in body):
        raise ValueError(f"{path} has no NAMES")
    return ()


def _lines(found: dict[Path, tuple[str, ...]], wanted: Set[str]) -> Iterator[Line]:
    for path, names in found.items():
        if asked := wanted & set(names):
            yield from (line for line in _run(path, asked) if line["bench"] in asked)


def _run(path: Path, wanted: Set[str]) -> Iterable[Line]:
    spec = importlib.util.spec_from_file_location(f"bench.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    lines: Iterable[Line] = module.run(wanted)
    return lines


if __name__ == "__main__":
    end_like_interrupted()
    sys.exit(main(sys.argv[1:]))
