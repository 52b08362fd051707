"""NATS whose disk is full: the services stay up and say so, and all goes on by itself once there is room.

A nats-server (2.15) that could not write goes on refusing when there is room again, until it is restarted: its own habit, the same
for a full file system and for a file that may not grow. The supervisor of the embedded one does so.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from proxied import Proxied, proxied

LONG = pytest.mark.skipif(not os.environ.get("GRYVIA_FAULTS"), reason="long: make test-faults")
SIZE = 8 << 20


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of its own in memory; skips where one may not be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a file system of its own takes root: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Not a byte is left."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


async def until_said(platform: Proxied) -> None:
    assert "NATS has not stored a change for" in await platform.until_said("bridge", "publishing", seconds=40)
    for name in ("jobs", "tuner"):
        await platform.until_said(name, "lease", seconds=40)


async def goes_on(platform: Proxied, before: dict[str, int]) -> None:
    await platform.until_ended("meanwhile", seconds=60)
    await platform.site.until_ready(seconds=20)
    assert all(process.starts == 1 for process in platform.site.services.values())
    said = platform.said()
    said.subtract(before)
    assert not [text for text, times in said.items() if times > 2], said


@LONG
@pytest.mark.timeout(200)
async def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    async with proxied(tmp_path) as platform:
        await platform.study_ends("before")
        before = platform.said()
        nats = platform.site.nats
        resource.prlimit(nats.pid or 0, resource.RLIMIT_FSIZE, (2048, resource.RLIM_INFINITY))
        await platform.create("meanwhile", trials=2)
        # Its log may not grow either, so nobody knows why until it may.
        await until_said(platform)
        assert nats.restarts == 0
        resource.prlimit(nats.pid or 0, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await goes_on(platform, before)
        assert nats.restarts == 1


@LONG
@pytest.mark.timeout(200)
async def test_a_full_file_system(tmp_path: Path) -> None:
    with small_disk(tmp_path / "nats"):
        async with proxied(tmp_path) as platform:
            await platform.study_ends("before")
            before = platform.said()
            filler = tmp_path / "nats" / "filler"
            fill(filler)
            await platform.create("meanwhile", trials=2)
            for number in range(4):
                # What the file system had given to the stream's file already is used up, too.
                await platform.create(f"more-{number}", trials=1)
            await until_said(platform)
            assert platform.site.nats.restarts == 0
            filler.unlink()
            await goes_on(platform, before)
            assert platform.site.nats.restarts == 1
