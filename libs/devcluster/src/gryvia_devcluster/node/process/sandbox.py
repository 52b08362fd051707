"""A private view of the file system for one process, without root: user, mount and UTS namespaces by ctypes.

The new root is a tmpfs in which every entry of `/` is bound again, so that a mount path such as `/data` or
`/etc/config` can exist for the process although it does not on the machine. A directory in which a missing path has to
appear is "opened up": a tmpfs takes its place and its entries are bound one by one. Nothing on the machine changes, and
all of it vanishes with the process. Only the standard library is used, because the launcher that imports this runs
isolated (`python -I -S`). overlayfs was rejected: older kernels refuse it to unprivileged users.
"""

from __future__ import annotations

import ctypes
import os
import stat
from typing import TypedDict

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER = 0x00020000, 0x04000000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_KEPT_FLAGS = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME | os.ST_RELATIME
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Mount(TypedDict):
    source: str
    target: str
    read_only: bool


class Libc:
    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def _check(self, result: int, what: str) -> None:
        if result != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), what)

    def unshare(self, flags: int) -> None:
        self._check(self._libc.unshare(flags), "unshare")

    def setns(self, fd: int, flag: int) -> None:
        self._check(self._libc.setns(fd, flag), "setns")

    def mount(self, source: str, target: str, kind: str, flags: int) -> None:
        arguments = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None)
        self._check(self._libc.mount(*arguments), target)

    def sethostname(self, name: str) -> None:
        raw = name.encode()
        self._check(self._libc.sethostname(raw, ctypes.c_size_t(len(raw))), "sethostname")

    def prctl(self, option: int, value: int) -> None:
        self._check(self._libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


def enter(libc: Libc, with_user: bool) -> None:
    """Move this single-threaded process into namespaces of its own; `with_user` where it is not privileged."""
    uid, gid = os.geteuid(), os.getegid()
    libc.unshare(CLONE_NEWNS | CLONE_NEWUTS | (CLONE_NEWUSER if with_user else 0))
    if with_user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {uid} 1")
        _write("/proc/self/gid_map", f"0 {gid} 1")
    libc.mount("none", "/", "", MS_REC | MS_PRIVATE)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def build_root(libc: Libc, root: str, mounts: list[Mount]) -> None:
    """Lay out `/` anew under the directory `root`, put the mounts in place and make it this process's root."""
    libc.mount("tmpfs", root, "tmpfs", 0)
    _bind_entries(libc, "/", root, skip=root)
    filled: list[str] = []
    ours = {os.stat(root).st_dev}
    for mount in sorted(mounts, key=lambda m: m["target"].count("/")):
        target = _inside(root, mount["target"])
        inside_volume = any(target == path or target.startswith(path + "/") for path in filled)
        if not os.path.exists(target):
            if not inside_volume:
                _open_up(libc, root, target, ours)
            _create(target, os.path.isdir(mount["source"]))
        libc.mount(mount["source"], target, "", MS_BIND | MS_REC)
        if mount["read_only"]:
            kept = os.statvfs(target).f_flag & _KEPT_FLAGS
            libc.mount("none", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY | kept)
        filled.append(target)
    os.chroot(root)
    os.chdir("/")


def _inside(root: str, target: str) -> str:
    """Where `target` lies under `root`, with the machine's own symbolic links on the way followed (`/var/run`)."""
    return root + os.path.realpath(target)


def _open_up(libc: Libc, root: str, target: str, ours: set[int]) -> None:
    """Make the nearest existing directory above `target` a tmpfs of ours, unless it is one already (by device)."""
    existing = os.path.dirname(target)
    while not os.path.isdir(existing):
        existing = os.path.dirname(existing)
    if os.stat(existing).st_dev not in ours:
        libc.mount("tmpfs", existing, "tmpfs", 0)
        _bind_entries(libc, existing[len(root) :], existing, skip="")
        ours.add(os.stat(existing).st_dev)


def _create(target: str, directory: bool) -> None:
    os.makedirs(target if directory else os.path.dirname(target), exist_ok=True)
    if not directory:
        os.close(os.open(target, os.O_CREAT, 0o644))


def _bind_entries(libc: Libc, source: str, target: str, skip: str) -> None:
    for entry in os.scandir(source):
        place = os.path.join(target, entry.name)
        if entry.path == skip:
            continue
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), place)
        elif entry.is_dir():
            os.mkdir(place)
            libc.mount(entry.path, place, "", MS_BIND | MS_REC)
        elif not stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
            os.close(os.open(place, os.O_CREAT, 0o644))
            libc.mount(entry.path, place, "", MS_BIND)


def join(libc: Libc, pid: int, with_user: bool) -> None:
    """Enter the namespaces and the root of a running process."""
    root = os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY)
    names = [("user", CLONE_NEWUSER)] if with_user else []
    names += [("uts", CLONE_NEWUTS), ("mnt", CLONE_NEWNS)]
    handles = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), flag) for name, flag in names]
    for handle, flag in handles:
        libc.setns(handle, flag)
        os.close(handle)
    os.fchdir(root)
    os.chroot(".")
    os.chdir("/")


def probe(libc: Libc, root: str) -> str:
    """How this machine lets us have namespaces: `root`, `user`, or `` (not at all). Forks, so nothing sticks."""
    modes = ("root", "user") if os.geteuid() == 0 else ("user",)
    for mode in modes:
        child = os.fork()
        if child == 0:
            try:
                enter(libc, mode == "user")
                build_root(libc, root, [])
                os._exit(0)
            except OSError:
                os._exit(1)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            return mode
    return ""
