"""A site whose services reach the API server and NATS through us: what each asks is recorded, each line can be cut or go silent."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from api_proxy import ApiProxy
from harness import Pod, Site, site, study
from real_site import SETTINGS, real_site
from tcp_proxy import Mode, TcpProxy

from gryvia_common.errors import GryviaError
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.objects import Json
from gryvia_common.runtime.access import NAMESPACE

SERVICES = ("bridge", "jobs", "tuner")
# Lines that say how it is, not that something is wrong.
LEVELS = ("warning", "error", "critical")


@dataclass
class Proxied:
    """`proxies` and `lines`: one a service; a line is the way to its proxy. `compact`: the API server's history is forgotten."""

    site: Site
    proxies: dict[str, ApiProxy]
    lines: dict[str, TcpProxy]
    nats: TcpProxy
    compact: Callable[[], None] = lambda: None

    def turn_api(self, mode: Mode) -> None:
        for line in self.lines.values():
            line.turn(mode)

    async def create(self, name: str, **spec: object) -> None:
        """Tried until the API server takes it."""
        while True:
            with suppress(GryviaError):
                await self.site.admin.create(AUTO_TUNER.resource, study(name, **spec))  # type: ignore[arg-type]
                return
            await asyncio.sleep(0.1)

    async def study_ends(self, name: str, *, trials: int = 2, seconds: float = 90.0) -> Json:
        await self.create(name, trials=trials)
        return await self.until_ended(name, seconds=seconds)

    async def until_ended(self, name: str, *, seconds: float = 90.0) -> Json:
        found: Json = {}
        async with asyncio.timeout(seconds):
            while (found.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                await asyncio.sleep(0.1)
                with suppress(GryviaError):
                    found = await self.site.admin.get(AUTO_TUNER.resource, "default", name)
        assert found["status"]["phase"] == "Succeeded", found["status"]
        assert all(trial.get("metricValue") == 0.5 for trial in found["status"]["trials"]), found["status"]
        return found

    async def until_said(self, name: str, check: str, *, seconds: float = 20.0) -> str:
        """What /readyz of a service says of a check that fails."""
        async with asyncio.timeout(seconds):
            while check not in (failing := await self.site.readyz(name)):
                await asyncio.sleep(0.1)
        return failing[check]

    def said(self) -> Counter[str]:
        """Who has logged what that is not as it should be, how often."""
        return Counter(
            f"{name}: {line['event']} {line.get('plural', '')}".rstrip()
            for name in SERVICES
            for line in self.site.services[name].lines()
            if line.get("level") in LEVELS
        )

    def tried(self) -> Counter[str]:
        """Requests that reached the proxy, and connections made in vain, by service."""
        return Counter({name: len(self.proxies[name].audit) + self.lines[name].in_vain for name in SERVICES})


@asynccontextmanager
async def proxied(
    folder: Path, *, real: bool = False, lease: float = 4.0, pods: Callable[[str], Pod] | None = None
) -> AsyncIterator[Proxied]:
    """`real`: on a real control plane."""
    pods = pods or (lambda name: Pod(0.5))
    async with AsyncExitStack() as stack:
        tls: ssl.SSLContext | None = None
        compact: Callable[[], None] = lambda: None  # noqa: E731
        kubeconfigs: dict[str, Path]
        if real:
            found, cluster = await stack.enter_async_context(real_site(folder, pods=pods))
            tls, compact = ssl.create_default_context(cafile=cluster.ca), cluster.compact
            kubeconfigs = {name: cluster.kubeconfig_of_account(NAMESPACE, f"gryvia-{name}") for name in SERVICES}
        else:
            found = await stack.enter_async_context(site(folder, pods=pods))
            kubeconfigs = dict.fromkeys(SERVICES, found.kubeconfig)
        nats = await stack.enter_async_context(TcpProxy(found.nats.port))
        platform = Proxied(found, {}, {}, nats, compact)
        for name in SERVICES:
            proxy = await stack.enter_async_context(ApiProxy(found.url, name, tls=tls))
            line = await stack.enter_async_context(TcpProxy(int(proxy.url.rpartition(":")[2])))
            platform.proxies[name], platform.lines[name] = proxy, line
            kubeconfig = folder / f"{name}.kubeconfig"
            text = kubeconfigs[name].read_text().replace(found.url, f"http://127.0.0.1:{line.port}")
            kubeconfig.write_text(text)
            kubeconfig.chmod(0o600)
            found.service(
                name,
                name,
                kubeconfig=kubeconfig,
                nats=f"nats://127.0.0.1:{nats.port}",
                GRYVIA_LEASE_SECONDS=str(lease),
                **(SETTINGS if real else {}),
            )
        await found.until_ready()
        yield platform
