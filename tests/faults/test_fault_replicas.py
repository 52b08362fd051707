"""Several replicas of each service on a real control plane: who works on what, and when it changes hands, is read from the API
server's audit log alone (audit.py)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from audit import KINDS, Act, HandOver, Owners, acts, hand_overs
from harness import Pod, Site, study
from real_site import SETTINGS, real_site
from tools.realcluster import RealCluster

from gryvia_common.bus.subjects import PARTITIONS, partition_of
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.runtime.access import NAMESPACE

SERVICES = ("jobs", "tuner")
STUDIES = 200
LEASE = {"GRYVIA_LEASE_SECONDS": "12"}
TOLD, KILLED = 2.0, 20.0
STANDING = "standing"
RBAC_GROUP = "rbac.authorization.k8s.io"
ACCOUNTS = f"system:serviceaccount:{NAMESPACE}:"


def pods(job: str) -> Pod:
    """Trials of the studies that go on all the time take two seconds, all others none."""
    return Pod(2.0 if job.startswith(STANDING) else 0.0)


def plain_job(name: str) -> Json:
    return {
        "apiVersion": AI_JOB.resource.api_version,
        "kind": AI_JOB.name,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "training", "gpus": 0, "image": "python:3.11-slim"},
    }


PROBES: dict[str, Callable[[str], Json]] = {"jobs": plain_job, "tuner": study}


@dataclass
class Watcher:
    """Makes work in every partition, and reads in the log whose it was."""

    site: Site
    cluster: RealCluster
    owners: Owners = field(default_factory=Owners)
    _numbers: Any = field(default_factory=count)

    def start(self, letter: str) -> None:
        """A replica of each service, as somebody of its own with the rights of its service."""
        for service in SERVICES:
            name = f"{service}-{letter}"
            account = {"name": name, "namespace": NAMESPACE}
            self.cluster.request("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": account})
            binding = {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": f"gryvia-{service}"},
                "subjects": [{"kind": "ServiceAccount", **account}],
            }
            self.cluster.request("POST", f"/apis/{RBAC_GROUP}/v1/clusterrolebindings", binding)
            kubeconfig = self.cluster.kubeconfig_of_account(NAMESPACE, name)
            self.site.service(service, name, kubeconfig=kubeconfig, **LEASE)

    def names(self, prefix: str) -> list[str]:
        """New names, one in each partition."""
        found: dict[int, str] = {}
        while len(found) < PARTITIONS:
            name = f"{prefix}-{next(self._numbers)}"
            found.setdefault(partition_of("default", name), name)
        return list(found.values())

    async def probe(self, service: str) -> list[str]:
        """A new object in each partition."""
        names = self.names("probe")
        await asyncio.gather(*(self.site.admin.create(KINDS[service], PROBES[service](name)) for name in names))
        return names

    async def until(self, service: str, names: list[str], *phases: str, seconds: float = 60.0) -> None:
        """Until all of them are in one of the phases (none given: in any)."""
        wanted = set(names)
        async with asyncio.timeout(seconds):
            while True:
                found = {
                    metadata(obj)["name"]: (obj.get("status") or {}).get("phase")
                    for obj in await self.site.admin.list(KINDS[service])
                }
                failed = [name for name in wanted if found.get(name) == "Failed"]
                assert not failed, failed
                if all(found.get(name) in phases if phases else found.get(name) for name in wanted):
                    return
                await asyncio.sleep(0.2)

    async def acts(self) -> dict[tuple[str, str], list[Act]]:
        """What has been asked so far, by object. The log first: whose children it names can be seen afterwards."""
        asked = acts(self.cluster.audit(), ACCOUNTS)
        await self.owners.look(self.site.admin)
        return self.owners.by_subject(asked)

    async def holders(self, service: str) -> dict[int, str]:
        """Partition to who has worked on an object that is new in it."""
        names = await self.probe(service)
        await self.until(service, names)
        found = await self.acts()
        return {partition_of("default", name): found[service, name][0].who for name in names}

    async def end(self, service: str, letter: str, number: signal.Signals) -> Ending:
        """End a replica for good, and wait until somebody else works on everything."""
        name = f"{service}-{letter}"
        process = self.site.services[name]
        process.hold.clear()
        at = time.time()
        process.send(number)
        names = await self.probe(service)
        await self.until(service, names)
        return Ending(name, at)


@dataclass(frozen=True, slots=True)
class Ending:
    who: str
    at: float

    def takeover(self, found: dict[tuple[str, str], list[Act]], holders: dict[int, str]) -> float:
        """Seconds until another replica had asked for something in the last of the partitions that were its own."""
        service = self.who.partition("-")[0]
        first: dict[int, float] = {}
        for (of, subject), lines in found.items():
            part = partition_of("default", subject)
            if of == service and holders[part] == self.who:
                began = [act.began for act in lines if act.who != self.who and act.began >= self.at]
                first[part] = min([first.get(part, float("inf")), *began])
        return max(first.values()) - self.at


def evenly(holders: dict[int, str]) -> list[int]:
    shares = sorted(Counter(holders.values()).values())
    assert shares[-1] - shares[0] <= 1, holders
    return shares


@pytest.mark.skipif(not os.environ.get("GRYVIA_FAULTS"), reason="on a real API server, minutes: make test-faults")
@pytest.mark.timeout(580)
async def test_replicas_share_evenly_never_meet_and_take_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two replicas of each service, then three; one told to end, one killed. Meanwhile a study in each partition never ends."""
    async with real_site(tmp_path, pods=pods) as (site, cluster):
        watcher = Watcher(site, cluster)
        bridge = cluster.kubeconfig_of_account(NAMESPACE, "gryvia-bridge")
        site.service("bridge", "bridge", kubeconfig=bridge, **SETTINGS, **LEASE)
        watcher.start("a")
        watcher.start("b")
        await site.until_ready()
        for name in watcher.names(STANDING):
            await site.admin.create(AUTO_TUNER.resource, study(name, trials=1000, parallelism=1))

        await run_studies(watcher, "two")
        two = {service: await watcher.holders(service) for service in SERVICES}
        added = time.time()
        watcher.start("c")
        await site.until_ready()
        async with asyncio.timeout(60):
            three = two
            while any(f"{service}-c" not in three[service].values() for service in SERVICES):
                three = {service: await watcher.holders(service) for service in SERVICES}
        await run_studies(watcher, "three")
        three = {service: await watcher.holders(service) for service in SERVICES}
        told = [await watcher.end(service, "b", signal.SIGTERM) for service in SERVICES]
        left = {service: await watcher.holders(service) for service in SERVICES}
        killed = [await watcher.end(service, "a", signal.SIGKILL) for service in SERVICES]
        found = await watcher.acts()

    changes = list(hand_overs(found))
    assert not [change for change in changes if change.taken < change.left], "two passes on one object at once"
    allowed = [("", f"{service}-c", added) for service in SERVICES]
    allowed += [(ending.who, "", ending.at) for ending in (*told, *killed)]
    assert not [change for change in changes if not any(permits(*one, change) for one in allowed)]
    moved = {}
    for service in SERVICES:
        moved[service] = {part for part in range(PARTITIONS) if two[service][part] != three[service][part]}
        assert {three[service][part] for part in moved[service]} == {f"{service}-c"}
        assert len(moved[service]) in (5, 6)
    shares = {service: (evenly(two[service]), evenly(three[service]), evenly(left[service])) for service in SERVICES}
    waits_told = {ending.who: ending.takeover(found, three[ending.who.partition("-")[0]]) for ending in told}
    waits_killed = {ending.who: ending.takeover(found, left[ending.who.partition("-")[0]]) for ending in killed}
    assert max(waits_told.values()) <= TOLD, waits_told
    assert max(waits_killed.values()) <= KILLED, waits_killed

    requests = Counter(act.who for lines in found.values() for act in lines)
    waits = {who: round(seconds, 2) for who, seconds in (waits_told | waits_killed).items()}
    with capsys.disabled():
        print(f"\nreplicas: {len(found)} objects, {sum(requests.values())} requests: {dict(sorted(requests.items()))}")
        print(f"partitions with two, three, again two replicas: {shares}")
        print(f"moved to the third: { {service: len(parts) for service, parts in moved.items()} } of {PARTITIONS}")
        print(f"{len(changes)} objects changed hands, 0 overlaps; seconds to take over: {waits}")


def permits(old: str, new: str, since: float, change: HandOver) -> bool:
    """An object goes to the replica that came, or away from the one that ended; between no others, and not before."""
    return change.taken >= since and change.old == (old or change.old) and change.new == (new or change.new)


async def run_studies(watcher: Watcher, label: str) -> None:
    names = [f"{label}-{number}" for number in range(STUDIES)]
    for name in names:
        await watcher.site.admin.create(AUTO_TUNER.resource, study(name))
    await watcher.until("tuner", names, "Succeeded", seconds=180)
