"""The kubeconfig and the token of a cluster."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import orjson

from gryvia_devcluster.types import Json


def load_token(data_dir: Path) -> str:
    """The cluster's admin token; made once and kept, readable by its owner only."""
    path = data_dir / "token"
    if path.exists() and (token := path.read_text().strip()):
        return token
    token = secrets.token_urlsafe(24)
    write_private(path, token)
    return token


def write_private(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def kubeconfig(url: str, token: str) -> str:
    """JSON, which is YAML too.

    The token stands in the server's path as well, because kubectl sends none over plain http (see api/server.py).
    """
    name = "devcluster"
    config: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"{url}/token/{token}"}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
    }
    return orjson.dumps(config, option=orjson.OPT_INDENT_2).decode() + "\n"
