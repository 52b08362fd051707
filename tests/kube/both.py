"""The same platform beside the real one, on devcluster with the same simulated node, for what has to come out alike on both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tools.realcluster.http import Http
from tools.realcluster.node import Fate, SimulatedNode

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.bus_users import make_users
from gryvia_cli.platform.crds import connected, install_crds
from gryvia_cli.platform.services import SERVICES
from gryvia_common.clock import SystemClock
from gryvia_common.kube.client import Kube, KubeSettings
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import NAMESPACES
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings

from .platform import NAMESPACE, Services


class Logs:
    """What the pods of a simulated node have written, in files, where devcluster looks for it."""

    def __init__(self, folder: Path, choose: Callable[[Json, int], Fate]) -> None:
        self._folder = folder
        self._choose = choose

    def __call__(self, pod: Json, attempt: int) -> Fate:
        fate = self._choose(pod, attempt)
        self.path(pod, "").write_text(fate.log)
        return fate

    def path(self, pod: Json, container: str, *, previous: bool = False) -> Path:
        return self._folder / f"{metadata(pod)['uid']}.log"

    def ended(self, pod: Json, container: str) -> bool:
        return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


@asynccontextmanager
async def platform_on_devcluster(
    folder: Path, namespace: str, choose: Callable[[Json, int], Fate]
) -> AsyncIterator[Kube]:
    """An admin's client; `namespace` is made. devcluster judges nobody's rights, so all services have its one token."""
    folder.mkdir()
    kubeconfig, logs = folder / "kubeconfig", Logs(folder, choose)
    settings = Settings(data_dir=folder / "cluster", node=False)
    nats = NatsServer(folder / "nats", config=make_users(folder / "bus"))
    services = Services({service.name: kubeconfig for service in SERVICES}, nats, folder / "bus", folder)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(DevCluster(settings, logs=logs))
        await cluster.write_kubeconfig(kubeconfig)
        kube = await stack.enter_async_context(connected(KubeSettings(kubeconfig=kubeconfig), SystemClock()))
        await install_crds(kube, SystemClock())
        for name in (NAMESPACE, namespace):
            await kube.create(NAMESPACES, {"metadata": {"name": name}})
        api = await stack.enter_async_context(Http(cluster.url, cluster.token))
        await stack.enter_async_context(SimulatedNode(api, logs))
        await nats.start(supervise=False)
        stack.push_async_callback(nats.stop)
        stack.push_async_callback(services.stop)
        await services.start()
        yield kube
