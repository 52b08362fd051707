"""Several replicas of each service: who works on what is read from the API server's side, by one recording proxy a replica."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from contextlib import AsyncExitStack
from itertools import count, pairwise
from pathlib import Path

import pytest
from api_proxy import ApiProxy, Request
from harness import Site, site, study

from gryvia_common.bus.subjects import PARTITIONS, partition_of
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.objects import metadata

MANY = bool(os.environ.get("GRYVIA_FAULTS"))
STUDIES = 200 if MANY else 12
LEASE = 12.0 if MANY else 4.0


class Replicas:
    """Services behind a proxy each."""

    def __init__(self, found: Site, stack: AsyncExitStack) -> None:
        self.site = found
        self.proxies: dict[str, ApiProxy] = {}
        self._stack = stack
        self._numbers = count()

    async def add(self, package: str, name: str) -> None:
        proxy = self.proxies[name] = await self._stack.enter_async_context(ApiProxy(self.site.url, name))
        kubeconfig = proxy.kubeconfig(self.site.kubeconfig, self.site.folder / f"{name}.kubeconfig")
        self.site.service(package, name, kubeconfig=kubeconfig, GRYVIA_LEASE_SECONDS=str(LEASE))

    async def one_in_each_partition(self) -> dict[int, str]:
        """New studies, so that whoever holds a partition writes to the API server."""
        names: dict[int, str] = {}
        while len(names) < PARTITIONS:
            name = f"probe-{next(self._numbers)}"
            names.setdefault(partition_of("default", name), name)
        for name in names.values():
            await self.site.admin.create(AUTO_TUNER.resource, study(name))
        return names

    def writes(self, package: str) -> dict[str, list[tuple[Request, str]]]:
        """By subject, in time."""
        found: dict[str, list[tuple[Request, str]]] = {}
        for name, proxy in self.proxies.items():
            for line in proxy.audit if name.startswith(package) else ():
                if line.subject:
                    found.setdefault(line.subject, []).append((line, name))
        for lines in found.values():
            lines.sort(key=lambda entry: entry[0].began)
        return found

    def owners(self, names: dict[int, str]) -> dict[int, str]:
        written = self.writes("tuner")
        return {part: written[f"gryviaautotuners/{name}"][0][1] for part, name in names.items()}

    async def until_written(self, names: dict[int, str], *, seconds: float = 40.0) -> float:
        """Seconds until each has been written to."""
        started = time.monotonic()
        async with asyncio.timeout(seconds):
            while True:
                written = self.writes("tuner")
                if all(f"gryviaautotuners/{name}" in written for name in names.values()):
                    return time.monotonic() - started
                await asyncio.sleep(0.02)

    def overlaps(self) -> list[str]:
        """Writes about one object by two replicas of a service at once: two passes."""
        found = []
        for package in ("jobs", "tuner"):
            for subject, lines in self.writes(package).items():
                found += [
                    f"{subject}: {one} until {first.ended:.3f}, {other} from {second.began:.3f}"
                    for (first, one), (second, other) in pairwise(lines)
                    if one != other and second.began < first.ended
                ]
        return found


async def ended(found: Site, number: int, *, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while True:
            studies = await found.admin.list(AUTO_TUNER.resource)
            phases = Counter((obj.get("status") or {}).get("phase") for obj in studies)
            if phases["Succeeded"] >= number:
                return
            assert not phases["Failed"], [
                s["status"] for s in studies if (s.get("status") or {}).get("phase") == "Failed"
            ]
            await asyncio.sleep(0.2)


@pytest.mark.timeout(400)
async def test_replicas_share_evenly_never_meet_and_take_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two replicas each, then a third tuner, one told to end, one killed."""
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(site(tmp_path))
        replicas = Replicas(found, stack)
        found.service("bridge", "bridge", GRYVIA_LEASE_SECONDS=str(LEASE))
        for package in ("jobs", "tuner"):
            for letter in "ab":
                await replicas.add(package, f"{package}-{letter}")
        await found.until_ready()

        for number in range(STUDIES):
            await found.admin.create(AUTO_TUNER.resource, study(f"study-{number}"))
        await ended(found, STUDIES, seconds=240)
        for package in ("jobs", "tuner"):
            holders: dict[int, set[str]] = {}
            for subject, lines in replicas.writes(package).items():
                part = partition_of("default", subject.partition("/")[2])
                holders.setdefault(part, set()).update(who for _, who in lines)
            assert all(len(who) == 1 for who in holders.values()), holders
            shares = Counter(name for [name] in holders.values())
            assert sorted(shares.values())[-1] <= PARTITIONS // 2, shares

        two = replicas.owners(await _written(replicas))
        await replicas.add("tuner", "tuner-c")
        await found.until_ready("tuner-c")
        async with asyncio.timeout(20):
            while "tuner-c" not in (three := replicas.owners(await _written(replicas))).values():
                pass
        moved = {part for part in two if two[part] != three[part]}
        assert {three[part] for part in moved} == {"tuner-c"}
        assert len(moved) in (5, 6)
        assert set(Counter(three.values()).values()) <= {5, 6}

        told = await _gone(replicas, "tuner-b", signal.SIGTERM)
        killed = await _gone(replicas, "tuner-a", signal.SIGKILL)
        assert told <= 2.0
        assert killed <= LEASE + 8.0
        assert not replicas.overlaps()
        names = Counter(metadata(obj)["name"] for obj in await found.admin.list(AUTO_TUNER.resource))
        with capsys.disabled():
            if MANY:
                writes = sum(len(lines) for package in ("jobs", "tuner") for lines in replicas.writes(package).values())
                print(
                    f"\nreplicas: {len(names)} studies, {writes} writes, 0 overlaps; moved to a third: {len(moved)} of 16; "
                    f"takeover {told:.2f} s after SIGTERM, {killed:.1f} s after SIGKILL (lease {LEASE:.0f} s)"
                )


async def _written(replicas: Replicas) -> dict[int, str]:
    names = await replicas.one_in_each_partition()
    await replicas.until_written(names)
    return names


async def _gone(replicas: Replicas, name: str, number: signal.Signals) -> float:
    """End a replica for good; seconds until somebody else works on everything."""
    process = replicas.site.services[name]
    process.hold.clear()
    names = await replicas.one_in_each_partition()
    process.send(number)
    seconds = await replicas.until_written(names)
    late = await replicas.one_in_each_partition()
    assert process.pid is None or number is not signal.SIGKILL
    return seconds + await replicas.until_written(late)
