"""What happens to pods when devcluster goes down, in good order or not, and comes back."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from gryvia_devcluster.node.process.launcher import start_time
from gryvia_devcluster.node.process.spawner import Spawn, Spawner
from gryvia_devcluster.node.recovery import kill_leftovers

Json = dict[str, Any]
Start = Callable[[], AbstractAsyncContextManager[Any]]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pid_of(machine: Any, pod: Json) -> int:
    place = machine.data_dir / "pods" / pod["metadata"]["uid"] / "containers" / "main" / "process.json"
    return int(json.loads(place.read_text())["pid"])


async def test_processes_end_with_the_node_and_pods_go_on_as_their_policy_says(start: Start) -> None:
    async with start() as machine:
        machine.pod("again", "import time; time.sleep(60)", restartPolicy="Always")
        machine.pod("never", "import time; time.sleep(60)")
        pods = [await machine.phase(name, "Running") for name in ("again", "never")]
        pids = [pid_of(machine, pod) for pod in pods]
    assert not any(alive(pid) for pid in pids)
    async with start() as machine:
        failed = await machine.phase("never", "Failed")
        state = failed["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (state["exitCode"], state["reason"]) == (137, "ContainerStatusUnknown")
        [disrupted] = [c for c in failed["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert (disrupted["status"], disrupted["reason"]) == ("True", "TerminationByKubelet")

        def restarted(pod: Json) -> bool:
            status = pod["status"]["containerStatuses"][0]
            return status["restartCount"] == 1 and "running" in status["state"]

        await machine.until("pods", "again", restarted)


async def test_a_killed_launcher_takes_its_processes_with_it(tmp_path: Path) -> None:
    async with Spawner(tmp_path / "scratch") as spawner:
        spawn = Spawn(["sleep", "60"], {"PATH": "/bin:/usr/bin"}, str(tmp_path), str(tmp_path / "log"))
        process = await spawner.start(spawn)
        handle = os.pidfd_open(process.pid)
        os.kill(spawner.launcher_pid, signal.SIGKILL)
        assert await asyncio.wait_for(process.ended, 5) == -signal.SIGKILL
        readable, _, _ = await asyncio.to_thread(select.select, [handle], [], [], 5)
        os.close(handle)
        assert readable == [handle]


def test_only_a_process_with_the_recorded_start_time_is_killed(tmp_path: Path) -> None:
    ours, other = (subprocess.Popen(["sleep", "60"], start_new_session=True, env={}) for _ in range(2))
    try:
        for process, shift in ((ours, 0), (other, -1)):
            place = tmp_path / f"uid{process.pid}" / "containers" / "main"
            place.mkdir(parents=True)
            record = {"pid": process.pid, "start": start_time(process.pid) + shift}
            (place / "process.json").write_text(json.dumps(record))
        assert kill_leftovers(tmp_path) == 1
        assert ours.wait(5) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()


def test_an_orphan_of_a_dead_leader_is_known_by_its_environment(tmp_path: Path) -> None:
    place = tmp_path / "uid" / "containers" / "main"
    place.mkdir(parents=True)
    env = {"GRYVIA_TERMINATION_LOG": str(place / "termination-log")}
    leader = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 60 & echo $!"], start_new_session=True, env=env, stdout=subprocess.PIPE, text=True
    )
    assert leader.stdout is not None
    orphan = int(leader.stdout.readline())
    leader.wait()
    leader.stdout.close()
    (place / "process.json").write_text(json.dumps({"pid": leader.pid, "start": 1}))
    assert alive(orphan)
    assert kill_leftovers(tmp_path) == 1
