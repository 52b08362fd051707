"""A private root for a process: mount paths appear, the machine does not change. Also without being root."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from gryvia_devcluster.node.process import sandbox

NOBODY = 65534
PR_SET_DUMPABLE = 4


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked process; its exit code, 0 when it raised nothing."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def libc(tmp_path: Path) -> sandbox.Libc:
    libc = sandbox.Libc()
    (tmp_path / "probe").mkdir()
    if not sandbox.probe(libc, str(tmp_path / "probe")):
        pytest.skip("this machine does not allow namespaces")
    return libc


def layout(tmp_path: Path) -> tuple[str, list[sandbox.Mount]]:
    tmp_path.chmod(0o777)
    root, volume = tmp_path / "root", tmp_path / "volume"
    for folder in (root, volume):
        folder.mkdir()
        folder.chmod(0o777)
    (volume / "file").write_text("inside")
    source = str(volume)
    return str(root), [
        {"source": source, "target": "/never/was/here", "read_only": False},
        {"source": source, "target": "/etc/first-config", "read_only": True},
        {"source": source, "target": "/etc/second-config", "read_only": True},
        {"source": str(volume / "file"), "target": "/dev/termination-log", "read_only": False},
        {"source": source, "target": "/never/was/here/nested", "read_only": False},
    ]


def check_inside() -> None:
    assert Path("/never/was/here/file").read_text() == "inside"
    assert Path("/never/was/here/nested/file").read_text() == "inside"
    assert Path("/etc/first-config/file").read_text() == Path("/etc/second-config/file").read_text() == "inside"
    assert Path("/etc/passwd").exists()
    assert Path("/dev/null").is_char_device()
    Path("/dev/termination-log").write_text("written")
    with pytest.raises(OSError, match="Read-only"):
        Path("/etc/first-config/new").write_text("")


def test_missing_mount_paths_appear_for_the_process_alone(libc: sandbox.Libc, tmp_path: Path) -> None:
    root, mounts = layout(tmp_path)

    def work() -> None:
        sandbox.enter(libc, with_user=True)
        sandbox.build_root(libc, root, mounts)
        check_inside()

    assert in_child(work) == 0
    assert (tmp_path / "volume" / "file").read_text() == "written"
    assert not Path("/never").exists()
    assert not Path("/etc/first-config").exists()
    assert os.listdir(root) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else; others are covered above")
def test_it_works_for_a_user_without_privileges(libc: sandbox.Libc) -> None:
    place = Path(tempfile.mkdtemp())
    try:
        root, mounts = layout(place)
        (place / "volume" / "file").chmod(0o666)

        def work() -> None:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            libc.prctl(PR_SET_DUMPABLE, 1)  # changing the user makes /proc/self root's; a login shell's is its own
            sandbox.enter(libc, with_user=True)
            sandbox.build_root(libc, root, mounts)
            check_inside()

        assert in_child(work) == 0
    finally:
        shutil.rmtree(place)
