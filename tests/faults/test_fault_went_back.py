"""An API server that comes back at an earlier state (a backup, lost last writes) with higher versions: bus and services go back with
it, instead of believing for ever what never was."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest
from harness import Pod, site, study

from gryvia_bridge.checkpoint import Checkpoint, Comparison, Entry
from gryvia_bridge.cluster import WentBack
from gryvia_bridge.envelope import envelope
from gryvia_common.errors import GryviaError
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.objects import Json, Key
from gryvia_common.runtime.cache import ObjectCache

KEY = Key("team", "one")


def job(version: int, uid: str = "u") -> Json:
    return {
        "metadata": {"name": "one", "namespace": "team", "uid": uid, "resourceVersion": f"{version}"},
        "spec": {},
        "status": {"phase": f"at {version}"},
    }


@pytest.mark.parametrize("deleted", [False, True])
def test_an_object_older_than_the_stream_in_a_list_that_is_not_is_proof(deleted: bool) -> None:
    stored = Checkpoint({KEY: Entry(0, "u", 50, deleted, 1)}, ())
    listed = envelope(AI_JOB.resource, job(30), "applied", 0.0)
    with pytest.raises(WentBack, match="version 30 in the list of version 100, and had 50 before"):
        Comparison("gryviaaijobs", stored, 100).wants(listed)
    assert not Comparison("gryviaaijobs", stored, 49).wants(listed)


def test_a_new_stream_is_believed_though_it_is_older() -> None:
    cache = ObjectCache()
    cache.put("gryviaaijobs", job(50))
    assert cache.put("gryviaaijobs", job(30)) is None
    cache.begin_replay()
    assert cache.put("gryviaaijobs", job(30)) is not None
    assert cache.get("gryviaaijobs", KEY)["status"] == {"phase": "at 30"}  # type: ignore[index]
    # From here on time runs forward again.
    assert cache.put("gryviaaijobs", job(29)) is None
    assert cache.end_replay() == []


def test_what_was_deleted_in_the_time_that_never_was_is_there_again() -> None:
    cache = ObjectCache()
    cache.put("gryviaaijobs", job(30))
    cache.remove("gryviaaijobs", KEY, "u", 50)
    assert cache.put("gryviaaijobs", job(30)) is None
    cache.begin_replay()
    assert cache.put("gryviaaijobs", job(30)) is not None


@pytest.mark.skipif(not os.environ.get("GRYVIA_FAULTS"), reason="long: make test-faults")
@pytest.mark.timeout(180)
async def test_a_study_ends_on_a_cluster_restored_from_a_backup(tmp_path: Path) -> None:
    """The backup is of its middle; when it is put back the study had ended."""
    async with site(tmp_path, persist=True, pods=lambda name: Pod(0.5)) as found:
        for name in ("bridge", "jobs", "tuner"):
            found.service(name, name)
        await found.until_ready()
        await found.admin.create(AUTO_TUNER.resource, study("one", trials=4, parallelism=1))

        async def completed(count: int, *, seconds: float) -> Json:
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        obj = await found.admin.get(AUTO_TUNER.resource, "default", "one")
                    except GryviaError:
                        obj = {}
                    if (obj.get("status") or {}).get("trialsCompleted", 0) >= count:
                        return obj
                    await asyncio.sleep(0.1)

        await completed(2, seconds=40)
        data, backup = tmp_path / "cluster", tmp_path / "backup"
        found.api.hold.clear()
        found.api.send(signal.SIGTERM)
        async with asyncio.timeout(10):
            while found.api.pid is not None:
                await asyncio.sleep(0.05)
        await asyncio.to_thread(shutil.copytree, data, backup)
        found.api.hold.set()
        await completed(4, seconds=60)

        found.api.hold.clear()
        found.api.send(signal.SIGKILL)
        async with asyncio.timeout(10):
            while found.api.pid is not None:
                await asyncio.sleep(0.05)
        for left in data.glob("state.sqlite*"):
            left.unlink()
        for saved in backup.glob("state.sqlite*"):
            shutil.copy(saved, data / saved.name)
        found.api.hold.set()
        async with asyncio.timeout(60):
            while not any(line["event"] == "bridge_cluster_changed" for line in found.services["bridge"].lines()):
                await asyncio.sleep(0.2)
        final = await completed(4, seconds=60)
        assert [trial["phase"] for trial in final["status"]["trials"]] == ["Succeeded"] * 4
        assert len(await found.admin.list(AI_JOB.resource, "default")) == 4
