"""What a devcluster can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """`port` 0 takes a free one. `data_dir` holds logs, volumes and the state file; `persist` keeps objects over restarts.

    `history` is the number of changes a watcher may lag behind before it gets 410. `token` "" makes a random one (kept in
    data_dir, so that a kubeconfig outlives a restart).
    """

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 0
    persist: bool = False
    images_file: Path | None = None
    history: int = 10_000
    controllers: bool = True
    node: bool = True
    token: str = ""
