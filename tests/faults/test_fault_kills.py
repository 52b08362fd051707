"""Kills, stops and wipes at random moments while twenty studies run, on devcluster and on a real control plane: all of them end as if
nothing had happened.

Part of `make test-faults`. The seed is printed and can be given (GRYVIA_FAULTS_SEED): who is hit when, and how, follows from it.
A stop is a SIGSTOP of GRYVIA_FAULTS_STOP seconds (60), which outlives every lease; others are hit meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from at_once import at_once
from harness import Pod, Site, site, study
from real_site import SETTINGS, between, real_site

from gryvia_common.bus.cloudevents import ReceivedEvent
from gryvia_common.bus.settings import BusSettings
from gryvia_common.errors import GryviaError
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.objects import Json, metadata, uid_of
from gryvia_common.kube.resources import JOBS, PODS
from gryvia_common.runtime.access import NAMESPACE

SEED = int(os.environ.get("GRYVIA_FAULTS_SEED") or 20260302)
STOP = float(os.environ.get("GRYVIA_FAULTS_STOP") or 60)
STUDIES, TRIALS, BLOWS = 20, 8, 40
# Eight stops, one after another, would fill it.
WINDOW = 8 * STOP
SERVICES = ("bridge", "jobs", "tuner")
SIGNALS = {"kill": signal.SIGKILL, "kill and wipe": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}
StoredEvents = Callable[[BusSettings], Awaitable[list[ReceivedEvent]]]


@dataclass(frozen=True, slots=True, order=True)
class Blow:
    """`at`: seconds after the studies were made."""

    at: float
    victim: str
    way: str

    async def fall(self, found: Site) -> None:
        """What was stopped goes on after STOP seconds, unless it was killed meanwhile."""
        processes = {**found.services, "api": found.api, "etcd": found.etcd}
        victim = found.nats if self.victim == "nats" else processes[self.victim]
        assert victim is not None
        while (pid := victim.pid) is None:
            await asyncio.sleep(0.05)  # struck down before, and not up again yet
        _send(pid, SIGNALS[self.way])
        if self.way == "kill and wipe":
            shutil.rmtree(found.nats.store, ignore_errors=True)
        if self.way == "stop":
            await asyncio.sleep(STOP)
            _send(pid, signal.SIGCONT)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def blows(victims: Sequence[str], *, wipe: bool) -> list[Blow]:
    """Each victim in each way at least once."""
    chance = random.Random(SEED)
    hit = [(victim, way) for victim in victims for way in ("kill", "stop", "term")]
    hit += [("nats", "kill and wipe")] * 2 if wipe else []
    hit += [(chance.choice(victims), chance.choice(("kill", "kill", "stop", "term"))) for _ in range(BLOWS - len(hit))]
    chance.shuffle(hit)
    return sorted(Blow(chance.uniform(0.0, WINDOW), *one) for one in hit)


def pods(job: str) -> Pod:
    """Long enough that studies are alive at the last blow: each has four rounds of two trials."""
    return Pod(between(0.02, 0.45, job) * WINDOW, 0.5)


@asynccontextmanager
async def platform(cluster: str, folder: Path) -> AsyncIterator[Site]:
    if cluster == "devcluster":
        async with site(folder, persist=True, pods=pods) as found:
            for name in SERVICES:
                found.service(name, name)
            await found.until_ready()
            yield found
    else:
        async with real_site(folder, pods=pods) as (found, control_plane):
            for name in SERVICES:
                kubeconfig = control_plane.kubeconfig_of_account(NAMESPACE, f"gryvia-{name}")
                found.service(name, name, kubeconfig=kubeconfig, **SETTINGS)
            await found.until_ready()
            yield found


async def studies(found: Site) -> list[Json]:
    while True:
        try:
            return await found.admin.list(AUTO_TUNER.resource)
        except GryviaError:
            await asyncio.sleep(0.2)  # it is being killed, too


@pytest.mark.skipif(
    not os.environ.get("GRYVIA_FAULTS"), reason="long: make test-faults; tests/e2e/test_crash.py kills each part once"
)
@pytest.mark.timeout(1800)
async def test_studies_survive_kills_of_everything(
    tmp_path: Path, stored_events: StoredEvents, capsys: pytest.CaptureFixture[str]
) -> None:
    async def campaign(cluster: str, victims: tuple[str, ...], *, wipe: bool) -> None:
        folder = tmp_path / cluster.replace(" ", "-")
        folder.mkdir()
        figures = await strike(cluster, folder, blows(victims, wipe=wipe), stored_events)
        with capsys.disabled():
            print(f"\nkills on {cluster}: {figures}")

    # A wipe takes the events with it: where there is none, each has to be there.
    await at_once(
        campaign("devcluster", (*SERVICES, "nats", "api"), wipe=True),
        campaign("a real control plane", (*SERVICES, "nats", "api", "etcd"), wipe=False),
    )


async def strike(cluster: str, folder: Path, planned: list[Blow], stored_events: StoredEvents) -> str:
    """A sentence with the figures."""
    loop = asyncio.get_running_loop()
    async with platform(cluster, folder) as found:
        for number in range(STUDIES):
            await found.admin.create(AUTO_TUNER.resource, study(f"study-{number}", trials=TRIALS))
        began = loop.time()
        async with asyncio.TaskGroup() as falling:
            for blow in planned:
                await asyncio.sleep(max(0.0, began + blow.at - loop.time()))
                falling.create_task(blow.fall(found))
        alive = sum(not ended(obj) for obj in await studies(found))
        async with asyncio.timeout(WINDOW + 300):
            while not all(ended(obj) for obj in await studies(found)):
                await asyncio.sleep(0.5)
        seconds = loop.time() - began
        await found.until_ready()
        wiped = any(blow.way == "kill and wipe" for blow in planned)
        await check(found, await stored_events(BusSettings(url=found.nats.url)), wiped)
        assert alive, "nobody was there to be hit by the last blow"
        done = Counter(f"{blow.victim} {blow.way}" for blow in planned)
        return (
            f"seed {SEED}, {STUDIES} studies of {TRIALS} trials in {seconds:.0f} s, {alive} alive after the last blow; "
            f"{len(planned)} blows, stops of {STOP:.0f} s: {', '.join(f'{who} {times}' for who, times in sorted(done.items()))}"
        )


def ended(obj: Json) -> bool:
    return (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")


async def check(found: Site, events: list[ReceivedEvent], wiped: bool) -> None:
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
    assert not [id for id, times in Counter(event.id for event in events).items() if times > 1]
    told = Counter(event.name for event in events if event.type == "gryvia.trial.completed")
    assert set(told.values()) <= {1}
    if not wiped:
        assert set(told) == expected
