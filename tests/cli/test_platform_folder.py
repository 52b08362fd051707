"""The `.gryvia` folder: ours and whole, or a sentence that says what is wrong with it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gryvia_cli.platform.folder import PlatformFolder
from gryvia_cli.platform.subprocesses import end_leftovers
from gryvia_common.errors import Terminal


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "is a file": (write, "is a file, not a folder"),
    "holds a stranger's files": (
        lambda root: write(root / "thesis.tex"),
        "is no folder of a platform: it holds 'thesis.tex'",
    ),
    "is of another version": (lambda root: write(root / "format", "7"), "says '7' where 1 is expected"),
    "has an unreadable format": (lambda root: (root / "format").mkdir(parents=True), "format: is a directory"),
    "has a file for its logs": (
        lambda root: (write(root / "format", "1"), write(root / "logs")),
        "logs: is a file, not a folder",
    ),
    "has a folder for its lock": (lambda root: (root / "run" / "lock").mkdir(parents=True), "lock: is a directory"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_folder_that(tmp_path: Path, damage: str) -> None:
    spoil, words = DAMAGE[damage]
    spoil(tmp_path / "place")
    with pytest.raises(Terminal) as caught, PlatformFolder(tmp_path / "place").hold():
        pass
    assert words in str(caught.value)
    assert str(tmp_path / "place") in str(caught.value)
    assert "--folder" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_stranger_s_folder_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("words")
    with pytest.raises(Terminal):
        PlatformFolder(tmp_path).prepare()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_may_not_be_written_is_a_sentence() -> None:
    with pytest.raises(Terminal, match=r"cannot use the folder /proc/gryvia: .*; move it away or pass --folder"):
        PlatformFolder(Path("/proc/gryvia")).prepare()


def test_only_one_platform_holds_a_folder_and_the_next_may_after_it(tmp_path: Path) -> None:
    folder = PlatformFolder(tmp_path / ".gryvia")
    refused = pytest.raises(Terminal, match=r"a platform is running in .* already; stop it first")
    with folder.hold(), refused, folder.hold():
        pass
    with folder.hold():
        pass


def test_a_platform_runs_while_the_process_that_said_so_lives(tmp_path: Path) -> None:
    folder = PlatformFolder(tmp_path / ".gryvia")
    assert not folder.is_running()
    with folder.hold():
        folder.write_address(nats_url="nats://127.0.0.1:1", pid=os.getpid())
        assert folder.is_running()
        assert folder.nats_url() == "nats://127.0.0.1:1"
        assert folder.address_file.stat().st_mode & 0o777 == 0o600
        with subprocess.Popen([sys.executable, "-c", ""]) as ended:
            ended.wait()
        folder.write_address(nats_url="nats://127.0.0.1:1", pid=ended.pid)
        assert not folder.is_running()
    assert folder.nats_url() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x", "natsUrl": 3}'])
def test_a_damaged_address_is_no_platform(tmp_path: Path, text: str) -> None:
    folder = PlatformFolder(tmp_path)
    write(folder.address_file, text)
    assert not folder.is_running()
    assert folder.nats_url() is None


def test_a_platform_is_found_from_a_folder_below(tmp_path: Path) -> None:
    write(tmp_path / ".gryvia" / "kubeconfig")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert PlatformFolder.find(below) == PlatformFolder(tmp_path / ".gryvia")


def test_services_left_behind_are_ended_and_strangers_are_not(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    port_file = {**os.environ, "GRYVIA_PORT_FILE": str(tmp_path / "jobs.port")}
    with subprocess.Popen(sleeper, env=port_file) as left, subprocess.Popen(sleeper) as stranger:
        try:
            write(tmp_path / "jobs.pid", str(left.pid))
            write(tmp_path / "tuner.pid", str(stranger.pid))
            write(tmp_path / "bridge.pid", "no number")
            asyncio.run(end_leftovers(tmp_path))
            assert left.wait(5) == -signal.SIGKILL
            assert stranger.poll() is None
            assert not list(tmp_path.glob("*.pid"))
        finally:
            left.kill()
            stranger.kill()
