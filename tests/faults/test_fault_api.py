"""Every way in which an API server or what stands before it can misbehave, met by the running services: nothing is lost, doubled or
stuck. And a quiet platform asks for nothing."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from api_proxy import KINDS, Fault, Request
from proxied import proxied

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.objects import metadata
from gryvia_common.kube.resources import JOBS

MANY = bool(os.environ.get("GRYVIA_FAULTS"))
SEED = int(os.environ.get("GRYVIA_FAULTS_SEED") or 20260303)
LONG = pytest.mark.skipif(not MANY, reason="long: make test-faults")


def a_watch(request: Request) -> bool:
    return request.watch


def a_write(request: Request) -> bool:
    return request.writes and not request.leases


@pytest.mark.timeout(800)
async def test_scripted_faults_of_requests_and_watches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind at once on some write of each service and on some watch of the bridge, while studies run."""
    chance = random.Random(SEED)
    rounds = 3 if MANY else 1
    async with proxied(tmp_path) as platform:
        for number in range(rounds):
            for name, proxy in platform.proxies.items():
                kinds = list(KINDS)
                chance.shuffle(kinds)
                fits = a_watch if name == "bridge" else a_write
                # Half an open connection takes its time: until the watch has been silent for a minute, the write for half of one.
                kinds = [kind for kind in kinds if MANY or kind != "half-open"]
                proxy.faults = [Fault(kind, fits) for kind in (kinds if MANY or name == "bridge" else kinds[:4])]
            ended = await asyncio.gather(
                *(platform.study_ends(f"study-{number}-{one}", trials=2, seconds=240) for one in range(3))
            )
            assert all(study["status"]["trialsCompleted"] == 2 for study in ended)
        jobs = Counter(metadata(job)["name"] for job in await platform.site.admin.list(JOBS, "default"))
        assert jobs == Counter(
            f"study-{n}-{one}-trial-{t}" for n in range(rounds) for one in range(3) for t in range(2)
        )
        done = Counter(line.fault for proxy in platform.proxies.values() for line in proxy.audit if line.fault)
        with capsys.disabled():
            if MANY:
                print(f"\nscripted faults, seed {SEED}: {dict(done)}")


@LONG
async def test_nothing_is_asked_when_nothing_changes(tmp_path: Path) -> None:
    """Counted at the proxies: leases and watches, and not one request besides."""
    async with proxied(tmp_path) as platform:
        await platform.study_ends("one")
        await asyncio.sleep(3)
        for proxy in platform.proxies.values():
            proxy.audit.clear()
        await asyncio.sleep(30 if MANY else 8)
        other = [
            f"{name}: {line.method} {line.path}"
            for name, proxy in platform.proxies.items()
            for line in proxy.audit
            if not (line.leases or line.watch)
        ]
        assert other == []
        jobs = await platform.site.admin.list(AI_JOB.resource, "default")
        assert {job["status"]["phase"] for job in jobs} == {"Succeeded"}
