"""Every way in which an API server or what stands before it can misbehave, met by the running services: nothing is lost, doubled or
stuck. And what they say of themselves while API server or NATS are away."""

from __future__ import annotations

import asyncio
import os
import random
import resource
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from api_proxy import KINDS, ApiProxy, Fault, Request
from harness import Pod, Site, site, study
from tcp_proxy import TcpProxy

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import JOBS

MANY = bool(os.environ.get("GRYVIA_FAULTS"))
SEED = int(os.environ.get("GRYVIA_FAULTS_SEED") or 20260303)
LONG = pytest.mark.skipif(not MANY, reason="long: make test-faults")
SERVICES = ("bridge", "jobs", "tuner")
AWAY = 60.0 if MANY else 8.0


@dataclass
class Proxied:
    """A site whose services reach the API server and NATS through us."""

    site: Site
    proxies: dict[str, ApiProxy]
    nats: TcpProxy

    async def study_ends(self, name: str, *, trials: int = 2, seconds: float = 90.0) -> Json:
        await self.site.admin.create(AUTO_TUNER.resource, study(name, trials=trials))
        return await self.until_ended(name, seconds=seconds)

    async def until_ended(self, name: str, *, seconds: float = 90.0) -> Json:
        found: Json = {}
        async with asyncio.timeout(seconds):
            while (found.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                await asyncio.sleep(0.1)
                found = await self.site.admin.get(AUTO_TUNER.resource, "default", name)
        assert found["status"]["phase"] == "Succeeded", found["status"]
        return found

    async def until_said(self, name: str, check: str, *, seconds: float = 20.0) -> str:
        """What /readyz of a service says of a check that fails."""
        async with asyncio.timeout(seconds):
            while check not in (failing := await self.site.readyz(name)):
                await asyncio.sleep(0.1)
        return failing[check]

    def warnings(self, name: str) -> list[str]:
        lines = self.site.services[name].lines()
        return [line["event"] for line in lines if line.get("level") in ("warning", "error", "critical")]


@asynccontextmanager
async def proxied(folder: Path) -> AsyncIterator[Proxied]:
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(site(folder, pods=lambda name: Pod(0.5)))
        nats = await stack.enter_async_context(TcpProxy(found.nats.port))
        proxies = {}
        for name in SERVICES:
            proxies[name] = await stack.enter_async_context(ApiProxy(found.url, name))
            kubeconfig = proxies[name].kubeconfig(found.kubeconfig, folder / f"{name}.kubeconfig")
            url = f"nats://127.0.0.1:{nats.port}"
            found.service(name, name, kubeconfig=kubeconfig, nats=url, GRYVIA_LEASE_SECONDS="4")
        await found.until_ready()
        yield Proxied(found, proxies, nats)


def a_watch(request: Request) -> bool:
    return request.watch


def a_write(request: Request) -> bool:
    return request.writes and not request.leases


@pytest.mark.timeout(300)
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
                proxy.faults = [Fault(kind, fits) for kind in kinds if not (name == "bridge" and kind == "half-open")]
                if name != "bridge":
                    proxy.faults = [fault for fault in proxy.faults if fault.kind != "half-open"][:4]
            ended = await asyncio.gather(
                *(platform.study_ends(f"study-{number}-{one}", trials=2, seconds=150) for one in range(3))
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


@pytest.mark.timeout(300)
async def test_the_api_server_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the services' requests are refused for a while: /readyz says which check and why, the log says it once, and all goes
    on by itself within seconds."""
    async with proxied(tmp_path) as platform:
        await platform.study_ends("before")
        for proxy in platform.proxies.values():
            proxy.mode = "reset"
        await platform.site.admin.create(AUTO_TUNER.resource, study("meanwhile"))
        for name in SERVICES[:1]:
            said = await platform.until_said(name, "api")
            assert "the API server has not answered for" in said
        before = {name: len(platform.warnings(name)) for name in SERVICES}
        asked = {name: len(proxy.audit) for name, proxy in platform.proxies.items()}
        await asyncio.sleep(AWAY)
        noise = {name: len(platform.warnings(name)) - before[name] for name in SERVICES}
        requests = {name: len(proxy.audit) - asked[name] for name, proxy in platform.proxies.items()}
        for proxy in platform.proxies.values():
            proxy.mode = None
        loop = asyncio.get_running_loop()
        back = loop.time()
        await platform.until_ended("meanwhile", seconds=40)
        seconds = loop.time() - back
        await platform.site.until_ready(seconds=15)
        assert all(process.starts == 1 for process in platform.site.services.values())
        assert all(lines <= 4 for lines in noise.values()), {name: platform.warnings(name) for name in SERVICES}
        with capsys.disabled():
            if MANY:
                print(
                    f"\nAPI server away for {AWAY:.0f} s: warnings {noise}, requests {requests}; a study that waited ended "
                    f"{seconds:.1f} s after its return"
                )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["cut", pytest.param("stall", marks=LONG)])
async def test_nats_away(tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Cut off, or connected and silent: /readyz names it, nobody works without a lease, and all goes on by itself."""
    async with proxied(tmp_path) as platform:
        await platform.study_ends("before")
        platform.nats.turn(mode)  # type: ignore[arg-type]
        said = {name: await platform.until_said(name, "lease") for name in ("jobs", "tuner")}
        assert all("lease" in text for text in said.values())
        if mode == "cut":
            assert all([await platform.until_said(name, "bus") for name in SERVICES])
        await platform.site.admin.create(AUTO_TUNER.resource, study("meanwhile"))
        before = {name: len(platform.warnings(name)) for name in SERVICES}
        await asyncio.sleep(AWAY)
        noise = {name: len(platform.warnings(name)) - before[name] for name in SERVICES}
        platform.nats.turn("pass")
        loop = asyncio.get_running_loop()
        back = loop.time()
        await platform.until_ended("meanwhile", seconds=60)
        seconds = loop.time() - back
        await platform.site.until_ready(seconds=15)
        assert all(process.starts == 1 for process in platform.site.services.values())
        assert all(lines <= 6 for lines in noise.values()), {name: platform.warnings(name) for name in SERVICES}
        with capsys.disabled():
            if MANY:
                print(
                    f"\nNATS {mode} for {AWAY:.0f} s: warnings {noise}; a study that waited ended {seconds:.1f} s after"
                )


@LONG
@pytest.mark.timeout(200)
async def test_nats_with_a_full_disk(tmp_path: Path) -> None:
    """A file of the server that may not grow stands for the full disk. The services stay up and say so. A nats-server that could
    not write goes on refusing when there is room again, until it is restarted (its own habit); then all goes on."""
    async with proxied(tmp_path) as platform:
        await platform.study_ends("before")
        found = platform.site
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(found.nats.pid or 0, resource.RLIMIT_FSIZE, (2048, resource.RLIM_INFINITY))
        await found.admin.create(AUTO_TUNER.resource, study("meanwhile"))
        assert "NATS has not stored a change for" in await platform.until_said("bridge", "publishing", seconds=40)
        for name in ("jobs", "tuner"):
            await platform.until_said(name, "lease")
        assert all(process.starts == 1 for process in found.services.values())
        resource.prlimit(found.nats.pid or 0, resource.RLIMIT_FSIZE, unlimited)
        await found.nats.kill()
        await platform.until_ended("meanwhile", seconds=60)
        await found.until_ready(seconds=20)
        assert all(process.starts == 1 for process in found.services.values())
        assert all(len(platform.warnings(name)) <= 12 for name in SERVICES), platform.warnings("bridge")


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
