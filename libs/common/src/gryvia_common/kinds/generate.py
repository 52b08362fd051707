"""Writes crds/*.yaml and docs/kinds/*.md from the kinds: `python -m gryvia_common.kinds.generate [--check] [root]`.

With --check nothing is written; files that are missing, differ, or should not be there are named and the exit code is 1.
Invariant: the output depends on the kinds alone, so that a difference in a review is a difference in a kind.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gryvia_common.kinds.catalogue import KINDS
from gryvia_common.kinds.crd import crd_yaml
from gryvia_common.kinds.reference import index, page, page_name

CRD_FOLDER = "crds"
PAGE_FOLDER = "docs/kinds"
_NOTICE = "# Generated from the kinds' source by `make crds`. Edit the source, not this file.\n"


def generated() -> dict[str, str]:
    """Every generated file: path below the root, and text."""
    files = {f"{CRD_FOLDER}/{kind.plural}.yaml": _NOTICE + crd_yaml(kind) for kind in KINDS}
    files |= {f"{PAGE_FOLDER}/{page_name(kind)}": page(kind) for kind in KINDS}
    files[f"{PAGE_FOLDER}/README.md"] = index(KINDS)
    return files


def stale(root: Path, files: Mapping[str, str]) -> list[str]:
    """Paths that are missing, differ, or have no kind any more."""
    known = {
        path
        for folder, suffix in ((CRD_FOLDER, "yaml"), (PAGE_FOLDER, "md"))
        for path in _present(root, folder, suffix)
    }
    return sorted(known - files.keys() | {path for path, text in files.items() if _read(root / path) != text})


def write(root: Path, files: Mapping[str, str]) -> None:
    for path in stale(root, files):
        target = root / path
        if path in files:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(files[path], encoding="utf-8")
        else:
            target.unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="gryvia_common.kinds.generate", description="Write the CRDs and the reference pages."
    )
    parser.add_argument("root", nargs="?", type=Path, default=Path.cwd(), help="root of the repository")
    parser.add_argument("--check", action="store_true", help="write nothing, name stale files")
    options = parser.parse_args(arguments)
    files = generated()
    if not options.check:
        write(options.root, files)
        return 0
    different = stale(options.root, files)
    for path in different:
        print(f"{path} is stale: run `make crds` and commit the result", file=sys.stderr)
    return 1 if different else 0


def _present(root: Path, folder: str, suffix: str) -> list[str]:
    return [path.relative_to(root).as_posix() for path in (root / folder).glob(f"*.{suffix}")]


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
