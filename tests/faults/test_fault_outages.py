"""API server or NATS away, cut off or connected and silent, for a while: the services stay up, say so in /readyz and once in the log,
ask little, lose nothing of what ended meanwhile, and go on by themselves.

`make test-faults` has each for a minute, and for ten: there the API server is a real one, killed, and comes back with its history
forgotten. The regular suite has the short ones.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from at_once import at_once
from harness import Pod
from proxied import SERVICES, Proxied, proxied

from gryvia_common.errors import GryviaError
from gryvia_common.kube.objects import labels_of
from gryvia_common.kube.resources import JOBS, PODS

MANY = bool(os.environ.get("GRYVIA_FAULTS"))
LONG = pytest.mark.skipif(not MANY, reason="long: make test-faults")
AWAY = 60.0 if MANY else 3.0
TEN_MINUTES = float(os.environ.get("GRYVIA_FAULTS_OUTAGE") or 600)
# Requests of one service a second while the API server is away: one question every five seconds for all that is to be known, and the
# logs of pods that run.
RATE = 0.5


@dataclass(frozen=True, slots=True)
class Outage:
    """`way`: killed is for the API server only, and then nobody can make anything while it is away."""

    part: Literal["API server", "NATS"]
    way: Literal["cut", "stall", "killed"]

    def begin(self, platform: Proxied) -> None:
        if self.way == "killed":
            platform.site.api.hold.clear()
            platform.site.api.send(signal.SIGKILL)
        elif self.part == "NATS":
            platform.nats.turn(self.way)
        else:
            platform.turn_api(self.way)

    async def end(self, platform: Proxied) -> None:
        if self.way == "killed":
            await asyncio.to_thread(platform.compact)
            platform.site.api.hold.set()
        elif self.part == "NATS":
            platform.nats.turn("pass")
        else:
            platform.turn_api("pass")

    async def until_said(self, platform: Proxied) -> None:
        if self.part == "API server":
            said = await platform.until_said("bridge", "api", seconds=30)
            assert "the API server has not answered for" in said
            return
        for name in ("jobs", "tuner"):
            assert "lease" in await platform.until_said(name, "lease", seconds=30)
        if self.way == "cut":
            assert all([await platform.until_said(name, "bus") for name in SERVICES])


def pods(away: float) -> Callable[[str], Pod]:
    """Those of the study `during` end while it lasts."""
    return lambda job: Pod(away / 2 if job.startswith("during") else 0.5)


async def endure(platform: Proxied, outage: Outage, away: float) -> str:
    """A sentence with the figures."""
    loop = asyncio.get_running_loop()
    await platform.study_ends("before")
    await platform.create("during", trials=2)
    await _until_running(platform, "during", 2)
    before = platform.said()
    outage.begin(platform)
    if outage.way != "killed":
        await platform.create("meanwhile", trials=2)
    await outage.until_said(platform)
    tried = platform.tried()
    await asyncio.sleep(away)
    said, asked = platform.said() - before, platform.tried() - tried
    await outage.end(platform)
    back = loop.time()
    await platform.create("after", trials=2)
    await _until_made(platform, "after-trial-0")
    ours = loop.time() - back
    for name in ("after", "during", *(("meanwhile",) if outage.way != "killed" else ())):
        # After a long outage Kubernetes' own Job controller takes most of a minute until it goes on.
        await platform.until_ended(name, seconds=240)
    seconds = loop.time() - back
    await platform.site.until_ready(seconds=20)
    assert all(process.starts == 1 for process in platform.site.services.values())
    assert not [text for text, times in said.items() if times > 1], said
    if outage.part == "API server":
        assert max(asked.values()) <= RATE * away + 20, asked
    rates = {name: round(asked[name] / away, 2) for name in SERVICES}
    return (
        f"{outage.part}, {outage.way}, for {away:.0f} s: {sum(said.values())} log lines; requests to the API server a second {rates}; "
        f"after its return a new study's first Job was made in {ours:.1f} s, all had ended in {seconds:.1f} s"
    )


async def _until_made(platform: Proxied, job: str) -> None:
    async with asyncio.timeout(30):
        while True:
            with suppress(GryviaError):
                await platform.site.admin.get(JOBS, "default", job)
                return
            await asyncio.sleep(0.05)


async def _until_running(platform: Proxied, study: str, count: int) -> None:
    async with asyncio.timeout(30):
        while True:
            found = await platform.site.admin.list(PODS, "default")
            mine = [pod for pod in found if labels_of(pod).get("gryvia.io/job", "").startswith(study)]
            if sum((pod.get("status") or {}).get("phase") == "Running" for pod in mine) >= count:
                return
            await asyncio.sleep(0.1)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "outage",
    [
        Outage("API server", "cut"),
        Outage("NATS", "cut"),
        pytest.param(Outage("API server", "stall"), marks=LONG),
        pytest.param(Outage("NATS", "stall"), marks=LONG),
    ],
    ids=lambda outage: f"{outage.part}-{outage.way}",
)
async def test_an_outage(tmp_path: Path, outage: Outage, capsys: pytest.CaptureFixture[str]) -> None:
    async with proxied(tmp_path, pods=pods(AWAY)) as platform:
        figures = await endure(platform, outage, AWAY)
    with capsys.disabled():
        if MANY:
            print(f"\noutage: {figures}")


@LONG
@pytest.mark.timeout(180)
async def test_a_restart_that_forgets_the_history(tmp_path: Path) -> None:
    """Over before the bridge has to give up its lease: its watches are answered 410, and each type is listed once."""
    async with proxied(tmp_path, real=True, pods=pods(4)) as platform:
        await endure(platform, Outage("API server", "killed"), 1.0)
        lines = platform.site.services["bridge"].lines()
        expired = [line["plural"] for line in lines if line["event"] == "bridge_watch_expired"]
        assert expired
        assert len(expired) == len(set(expired))
        assert sum(line["event"] == "bridge_leads" for line in lines) == 1


@LONG
@pytest.mark.timeout(1200)
async def test_ten_minutes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two platforms at once, for most of it is waiting: one loses a real API server, the other NATS."""

    async def one(outage: Outage, folder: str, *, real: bool) -> None:
        (tmp_path / folder).mkdir()
        async with proxied(tmp_path / folder, real=real, lease=12.0, pods=pods(TEN_MINUTES)) as platform:
            figures = await endure(platform, outage, TEN_MINUTES)
            with capsys.disabled():
                print(f"\noutage: {figures}")

    await at_once(
        one(Outage("API server", "killed"), "api", real=True),
        one(Outage("NATS", "cut"), "nats", real=False),
    )
