"""Kills, stops and wipes at random moments while twenty studies run: all of them end as if nothing had happened.

Part of `make test-faults`. The seed is printed and can be given
(GRYVIA_FAULTS_SEED); which part is hit when follows from it.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest
from harness import Pod, Site, site, study

from gryvia_common.bus.connection import Bus
from gryvia_common.bus.settings import BusSettings
from gryvia_common.bus.subscribe import ReceivedEvent, subscribe_events
from gryvia_common.clock import SystemClock
from gryvia_common.errors import GryviaError
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.objects import Json, metadata, uid_of
from gryvia_common.kube.resources import JOBS, PODS

MANY = bool(os.environ.get("GRYVIA_FAULTS"))
SEED = int(os.environ.get("GRYVIA_FAULTS_SEED") or 20260302)
STUDIES, TRIALS, BLOWS = 20, 8, 40
LEASE = "5"
SERVICES = ("bridge", "jobs", "tuner")


async def blow(found: Site, victim: str, way: str, seconds: float) -> None:
    """One kill. What was stopped goes on after `seconds`."""
    number = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}[way.partition(" ")[0]]
    if victim == "nats":
        if way == "kill and wipe":
            os.kill(found.nats.pid or 0, signal.SIGKILL)
            shutil.rmtree(found.nats.store, ignore_errors=True)
            return
        os.kill(found.nats.pid or 0, number)
        if way == "stop":
            await asyncio.sleep(seconds)
            os.kill(found.nats.pid or 0, signal.SIGCONT)
        return
    process = found.api if victim == "api" else found.services[victim]
    process.send(number)
    if way == "stop":
        await asyncio.sleep(seconds)
        process.send(signal.SIGCONT)


async def studies(found: Site) -> list[Json]:
    while True:
        try:
            return await found.admin.list(AUTO_TUNER.resource)
        except GryviaError:
            await asyncio.sleep(0.2)  # it is being killed, too


async def read_events(url: str) -> list[ReceivedEvent]:
    """All that the stream keeps: silence for two seconds is its end."""
    bus = await Bus.connect(BusSettings(url=url), name="test", clock=SystemClock())
    found: list[ReceivedEvent] = []
    events = subscribe_events(bus, since="all")
    try:
        while True:
            async with asyncio.timeout(2):
                found.append(await anext(events))
    except TimeoutError:
        return found
    finally:
        await events.aclose()
        await bus.close()


@pytest.mark.skipif(not MANY, reason="long: make test-faults; tests/e2e/test_crash.py kills each part once")
@pytest.mark.timeout(580)
async def test_studies_survive_kills_of_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(SEED)
    blows: Counter[str] = Counter()
    async with site(tmp_path, persist=True, pods=lambda name: Pod(0.5 + int(name[-1]) % 3, 0.5)) as found:
        for name in SERVICES:
            found.service(name, name, GRYVIA_LEASE_SECONDS=LEASE)
        await found.until_ready()
        for number in range(STUDIES):
            await found.admin.create(AUTO_TUNER.resource, study(f"study-{number}", trials=TRIALS))
        wiped = False
        for _ in range(BLOWS):
            await asyncio.sleep(chance.uniform(0.2, 3.0))
            victim = chance.choice([*SERVICES, "nats", "api"])
            ways = ["kill", "stop", "term"] + (["kill and wipe"] if victim == "nats" else [])
            way = chance.choice(ways)
            wiped |= way == "kill and wipe"
            blows[f"{victim}: {way}"] += 1
            await blow(found, victim, way, chance.uniform(1.0, 12.0))
        async with asyncio.timeout(240):
            while not all(
                (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed") for obj in await studies(found)
            ):
                await asyncio.sleep(0.5)
        await found.until_ready()
        await check(found, wiped)
        with capsys.disabled():
            if MANY:
                print(
                    f"\nkills, seed {SEED}: {STUDIES} studies of {TRIALS} trials, {sum(blows.values())} blows: {dict(blows)}"
                )


async def check(found: Site, wiped: bool) -> None:
    expected = {f"study-{n}-trial-{t}" for n in range(STUDIES) for t in range(TRIALS)}
    all_studies = await studies(found)
    said = {metadata(obj)["name"]: obj["status"] for obj in all_studies}
    assert all(status["phase"] == "Succeeded" for status in said.values()), said
    assert all(status["trialsCompleted"] == TRIALS for status in said.values()), said
    assert {trial["name"] for status in said.values() for trial in status["trials"]} == expected
    assert all(trial["metricValue"] == 0.5 for status in said.values() for trial in status["trials"])
    # No child twice, none of nobody.
    owners = {uid_of(obj) for obj in all_studies}
    for resource in (AI_JOB.resource, JOBS, PODS):
        children = await found.admin.list(resource, "default")
        parents = Counter(metadata(child)["ownerReferences"][0]["uid"] for child in children)
        assert len(children) == len(expected), (resource.kind, len(children))
        if resource != AI_JOB.resource:
            assert set(parents.values()) == {1}
        assert set(parents) <= owners
        owners = {uid_of(child) for child in children}
    events = await read_events(found.nats.url)
    ids = Counter(event.id for event in events)
    assert not [id for id, times in ids.items() if times > 1]
    told = Counter(event.name for event in events if event.type == "gryvia.trial.completed")
    assert set(told.values()) <= {1}
    if not wiped:
        assert set(told) == expected
