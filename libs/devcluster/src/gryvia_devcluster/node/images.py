"""What an image name runs on this machine: images.yaml, and the user's file before it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Image:
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = ""


class Images:
    """Invariant: the file was well-formed when it was read; a bad one raises ValueError that names entry and field."""

    def __init__(self, user_file: Path | None, bin_dir: Path) -> None:
        default = files("gryvia_devcluster.node").joinpath("images.yaml").read_text()
        self._places = {"{python}": sys.executable, "{bin}": str(bin_dir)}
        self._source = str(user_file) if user_file else "an images.yaml of your own (setting images_file)"
        user = self._parse(user_file.read_text(), str(user_file)) if user_file else []
        self._entries = [*user, *self._parse(default, "images.yaml")]

    def find(self, image: str) -> Image | None:
        bare = image.split("@")[0]
        names = (image, bare)
        return next((run for pattern, run in self._entries if any(fnmatchcase(n, pattern) for n in names)), None)

    def missing(self, image: str) -> str:
        """What to tell a user whose image nothing stands for."""
        return (
            f'failed to pull and unpack image "{image}": no entry of images.yaml matches it: this cluster runs programs '
            f"of this machine; add an entry with `image: {image}` and its `entrypoint` to {self._source}"
        )

    def _parse(self, text: str, source: str) -> list[tuple[str, Image]]:
        loaded = yaml.safe_load(text) or {}
        entries = loaded.get("images") if isinstance(loaded, dict) else loaded
        if not isinstance(entries, list):
            raise ValueError(f"{source}: expected `images:` with a list of entries")
        found: list[tuple[str, Image]] = []
        for number, entry in enumerate(entries):
            found += self._entry(entry, f"{source}: images[{number}]")
        return found

    def _entry(self, entry: Any, where: str) -> list[tuple[str, Image]]:
        known = {"image", "entrypoint", "cmd", "default", "env", "workdir"}
        if not isinstance(entry, dict) or not entry.get("image"):
            raise ValueError(f"{where}: an entry needs `image`")
        if unknown := sorted(set(entry) - known):
            raise ValueError(f"{where}.{unknown[0]}: unknown field; known are {', '.join(sorted(known))}")
        patterns = entry["image"] if isinstance(entry["image"], list) else [entry["image"]]
        image = Image(
            entrypoint=self._words(entry.get("entrypoint"), f"{where}.entrypoint"),
            cmd=self._words(entry.get("cmd", entry.get("default")), f"{where}.cmd"),
            env={str(key): self._fill(str(value)) for key, value in (entry.get("env") or {}).items()},
            workdir=self._fill(str(entry.get("workdir") or "")),
        )
        return [(str(pattern), image) for pattern in patterns]

    def _words(self, value: Any, where: str) -> tuple[str, ...]:
        if value is None:
            return ()
        if not isinstance(value, list):
            raise ValueError(f'{where}: expected a list of words, as in ["python", "-m", "http.server"]')
        return tuple(self._fill(str(word)) for word in value)

    def _fill(self, text: str) -> str:
        for place, value in self._places.items():
            text = text.replace(place, value)
        return text


def make_bin_dir(folder: Path) -> None:
    """`python` and `python3` that are this interpreter. Scripts, not links: a link would leave its virtual environment."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3", f"python3.{sys.version_info.minor}"):
        script = folder / name
        script.write_text(f'#!/bin/sh\nunset PWD OLDPWD SHLVL _\nexec "{sys.executable}" "$@"\n')
        script.chmod(0o755)
