"""Each package installs and imports alone: in one shared environment a package could import what it does not declare.

Every workspace package goes into a fresh environment of its own (from uv's cache: a second or two each), and all its modules are
imported there. Exit code 1 and the first error if one does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
"""


def packages() -> dict[str, str]:
    """Distribution name to import name."""
    found = {}
    for project in sorted(
        [*ROOT.glob("libs/*/pyproject.toml"), *ROOT.glob("services/*/pyproject.toml"), ROOT / "cli/pyproject.toml"]
    ):
        data = tomllib.loads(project.read_text())
        [source] = data["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        found[data["project"]["name"]] = Path(source).name
    return found


def main() -> int:
    for distribution, module in packages().items():
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": folder, "UV_PYTHON_DOWNLOADS": "never"}
            environment.pop("VIRTUAL_ENV", None)
            uv = [str(ROOT / ".tools/bin/uv"), "sync", "--quiet", "--frozen", "--no-dev", "--package", distribution]
            for command in (uv + ["--python", sys.executable], [f"{folder}/bin/python", "-c", IMPORT_ALL, module]):
                done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(f"{distribution} does not install and import alone:\n{done.stderr.strip()}")
                    return 1
        print(f"{distribution} installs and imports alone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
