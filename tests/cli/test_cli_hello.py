"""What a person is told to type: a kubectl that exists, paths that are short, and no password on the screen."""

from __future__ import annotations

import sysconfig
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from gryvia_cli import kubectl
from gryvia_cli.platform.embedded import Platform
from gryvia_cli.platform.folder import PlatformFolder
from gryvia_cli.platform.foreground import say_hello


def hello(folder: Path, nats: object = True) -> str:
    file = StringIO()
    found: Any = SimpleNamespace(folder=PlatformFolder(folder / ".gryvia"), nats=nats, nats_url="nats://127.0.0.1:4999")
    say_hello(Console(file=file, width=250, no_color=True), cast(Platform, found))
    return file.getvalue()


def test_the_users_own_kubectl_is_named_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.chdir(tmp_path)
    assert "\n  kubectl --kubeconfig .gryvia/kubeconfig get gryviaautotuners -A -w\n" in hello(tmp_path)


def test_without_one_it_is_the_one_of_this_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)
    scripts = Path(sysconfig.get_path("scripts"))
    assert f"\n  {scripts}/kubectl --kubeconfig .gryvia/kubeconfig get" in hello(tmp_path)
    monkeypatch.chdir(scripts.parents[1])
    assert f"\n  {scripts.relative_to(scripts.parents[1])}/kubectl --kubeconfig {tmp_path}/" in hello(tmp_path)


def test_without_any_it_says_where_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(kubectl, "_beside", lambda program: None)
    text = hello(tmp_path)
    assert "kubectl --kubeconfig" not in text
    assert "There is no kubectl here; `make install` puts one into .venv/bin." in text
    assert "gryvia --kubeconfig" in text


def test_the_bus_is_named_with_the_file_of_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "GRYVIA_NATS_URL=nats://reader:$(cat .gryvia/run/bus/reader)@127.0.0.1:4999\n" in hello(tmp_path)
    assert "GRYVIA_NATS_URL=nats://127.0.0.1:4999\n" in hello(tmp_path, nats=None)
