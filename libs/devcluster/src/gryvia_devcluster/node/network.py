"""Services on this machine: their addresses, their names, and the proxies behind them.

Follows Services, Endpoints and Pods and keeps the name files current, once for all changes of a turn of the event loop.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from gryvia_devcluster.clock import Clock
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.node.addresses import AddressBlock
from gryvia_devcluster.node.follow import Follower, key_of
from gryvia_devcluster.node.layout import Layout
from gryvia_devcluster.node.names import hosts_text, resolve_names, service_env, write_hosts, write_names
from gryvia_devcluster.node.proxy import ServiceProxies
from gryvia_devcluster.types import Api, Json


class Network:
    def __init__(self, api: Api, clock: Clock, layout: Layout, addresses: AddressBlock) -> None:
        self._api = api
        self._layout = layout
        self._addresses = addresses
        self._services = Follower(api, api.resource("", "services"), clock, self._service_changed)
        self._endpoints = Follower(api, api.resource("", "endpoints"), clock, self._endpoints_changed)
        self._proxies = ServiceProxies(self._refresh_soon)
        self._pods: dict[str, Json] = {}
        self._refreshing = False
        self._machine_hosts = _read(Path("/etc/hosts"))
        self._namespaces: set[str] = set()

    @property
    def names_file(self) -> Path:
        return self._layout.names / "cluster.json"

    def hosts_file(self, namespace: str) -> str:
        path = self._layout.names / f"{namespace}.hosts"
        if namespace not in self._namespaces:
            self._namespaces.add(namespace)
            self._refresh()
        return str(path)

    def service_env(self, pod: Json) -> dict[str, str]:
        if pod["spec"].get("enableServiceLinks") is False:
            return {}
        return service_env(self._services.objects.values(), pod["metadata"]["namespace"])

    def pod_changed(self, pod: Json, gone: bool) -> None:
        uid, ip = pod["metadata"]["uid"], pod.get("status", {}).get("podIP")
        known = self._pods.get(uid)
        if gone:
            self._pods.pop(uid, None)
        elif ip:
            self._pods[uid] = pod
        if (known is None) != (uid not in self._pods):
            self._refresh_soon()

    async def run(self) -> None:
        self._refresh()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._services.run())
                group.create_task(self._endpoints.run())
                group.create_task(self._proxies.run())
        finally:
            self._proxies.close()

    def _service_changed(self, service: Json, gone: bool) -> None:
        spec = service["spec"]
        if gone:
            self._addresses.release(spec.get("clusterIP") or "")
            self._proxies.remove(key_of(service))
        elif not spec.get("clusterIP") and spec.get("type") != "ExternalName":
            self._give_address(service)
        elif _has_address(service):
            self._addresses.reserve(spec["clusterIP"])
            self._proxies.put(service, self._endpoints.objects.get(key_of(service)))
        self._refresh_soon()

    def _give_address(self, service: Json) -> None:
        meta = service["metadata"]
        address = self._addresses.take_service()
        body = {"spec": {"clusterIP": address, "clusterIPs": [address]}}
        try:
            self._api.patch(
                self._api.resource("", "services"),
                meta["namespace"],
                meta["name"],
                body,
                "application/merge-patch+json",
                manager="devcluster",
            )
        except ApiError as error:
            self._addresses.release(address)
            if error.reason not in ("NotFound", "Invalid"):
                raise

    def _endpoints_changed(self, endpoints: Json, gone: bool) -> None:
        service = self._services.objects.get(key_of(endpoints))
        if service is not None and _has_address(service):
            self._proxies.put(service, None if gone else endpoints)
        self._refresh_soon()

    def _refresh_soon(self) -> None:
        if not self._refreshing:
            self._refreshing = True
            asyncio.get_running_loop().call_soon(self._refresh)

    def _refresh(self) -> None:
        self._refreshing = False
        names = resolve_names(self._services.objects.values(), self._endpoints.objects)
        write_names(self.names_file, names, self._proxies.redirects)
        for namespace in self._namespaces:
            pods = [pod for pod in self._pods.values() if pod["metadata"]["namespace"] == namespace]
            write_hosts(
                self._layout.names / f"{namespace}.hosts", hosts_text(names, namespace, pods, self._machine_hosts)
            )


def _has_address(service: Json) -> bool:
    return service["spec"].get("clusterIP") not in (None, "", "None")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return "127.0.0.1\tlocalhost\n"
