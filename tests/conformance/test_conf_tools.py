"""Who has not what the real API server is built with is told in one sentence."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tools.realcluster.programs import SCRIPT, NotBuilt, find_programs


@pytest.fixture
def without_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with the commands of every system and no Go, and nothing built."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("sh", "cat", "cksum", "cut", "dirname", "grep", "mkdir", "sed", "tr"):
        [found] = [place for place in ("/bin", "/usr/bin") if os.access(f"{place}/{name}", os.X_OK)][-1:]
        (commands / name).symlink_to(f"{found}/{name}")
    monkeypatch.setenv("PATH", str(commands))
    monkeypatch.setenv("GRYVIA_KUBE_TOOLS", str(tmp_path / "tools"))
    return tmp_path


def test_a_machine_without_go_gets_one_sentence(without_go: Path) -> None:
    built = subprocess.run(["sh", str(SCRIPT)], capture_output=True, text=True, check=False)
    assert (built.returncode, built.stdout) == (1, "")
    assert built.stderr == (
        "kube-tools: Go is needed to build etcd; install Go 1.26 or newer from https://go.dev/dl and put it on the PATH\n"
    )


def test_a_real_cluster_that_is_not_built_says_how_to_build_it(without_go: Path) -> None:
    with pytest.raises(NotBuilt, match=r"^kube-tools: etcd is not built; run: make kube-tools$"):
        find_programs()
