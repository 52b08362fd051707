"""What makes a pod's Python see the cluster's network; see gryvia_pod_network.py for what changes.

Python imports this at start, as it is on PYTHONPATH. `socket` is patched when the program imports it, so that one without
sockets pays nothing. A sitecustomize further down the path is run afterwards: an environment that has one keeps it.
Standard library only.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Patching:
    """A loader that runs the real one and then changes the module."""

    def __init__(self, spec: ModuleSpec) -> None:
        self._loader = spec.loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec) if self._loader else None

    def exec_module(self, module: ModuleType) -> None:
        if self._loader is not None:
            self._loader.exec_module(module)
        _patch(module)


class _Finder:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "socket":
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Patching(spec)  # type: ignore[assignment]  # the import system asks only for the two methods
                return spec
        return None


def _patch(module: ModuleType) -> None:
    import gryvia_pod_network

    gryvia_pod_network.patch(module, os.environ["GRYVIA_NAMES"], os.environ.get("GRYVIA_POD_IP", ""))


def _run_next() -> None:
    """The sitecustomize that this one hides, if there is one."""
    from importlib.util import module_from_spec

    others = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            continue
        spec = finder.find_spec("sitecustomize", others)
        if spec is not None and spec.loader is not None:
            sys.modules["sitecustomize"] = module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return


if os.environ.get("GRYVIA_NAMES"):
    if "socket" in sys.modules:
        _patch(sys.modules["socket"])
    else:
        sys.meta_path.insert(0, _Finder())
if __name__ == "sitecustomize":
    _run_next()
