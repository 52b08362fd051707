"""Which kubectl to tell people of: their own, else the one in this installation, else none."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path


def kubectl_command() -> str | None:
    """As a person would type it from here; None when there is none."""
    if shutil.which("kubectl"):
        return "kubectl"
    return _beside("kubectl")


def gryvia_command() -> str:
    """Likewise for this program."""
    return "gryvia" if shutil.which("gryvia") else _beside("gryvia") or "gryvia"


def short(path: Path) -> str:
    """Relative to where the person stands, if it is below."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _beside(program: str) -> str | None:
    path = Path(sysconfig.get_path("scripts")) / program
    return short(path) if path.exists() else None
