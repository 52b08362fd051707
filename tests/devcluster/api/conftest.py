"""A cluster without node and controllers, a client for it, and a custom type to try things on."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.bootstrap import bootstrap
from gryvia_devcluster.clock import VirtualClock
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings

Json = dict[str, Any]

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "replicas": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
            },
        },
    },
}


def crd(plural: str = "widgets", kind: str = "Widget", *, status: bool = True, scope: str = "Namespaced") -> Json:
    subresources: Json = {"status": {}} if status else {}
    if status:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": subresources,
        "additionalPrinterColumns": [
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "selectableFields": [{"jsonPath": ".spec.color"}],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": plural, "kind": kind, "shortNames": [plural[:2]]},
            "versions": [version],
        },
    }


def widget(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"size": 1, **spec},
    }


class Client:
    """Plain HTTP to one cluster: `await client("GET", path)` gives the status and the body."""

    def __init__(self, cluster: DevCluster, session: aiohttp.ClientSession) -> None:
        self.cluster = cluster
        self.session = session
        self.warnings: list[str] = []

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        sent = {name.replace("_", "-").title(): value for name, value in headers.items()}
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        async with self.session.request(
            method, self.cluster.url + path, data=data and io.BytesIO(data), headers=sent
        ) as response:
            self.warnings = response.headers.getall("Warning", [])
            raw = await response.read()
            if response.content_type == "application/json" and raw:
                return response.status, orjson.loads(raw)
            return response.status, raw.decode()

    async def ok(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        code, answer = await self(method, path, body, **headers)
        assert code < 300, answer
        return answer

    def watch(self, path: str) -> Watching:
        return Watching(self, path)


class Watching:
    """An open watch: `async with client.watch(path) as events: await events.next()`."""

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        self._path = path

    async def __aenter__(self) -> Watching:
        self._response = await self._client.session.get(self._client.cluster.url + self._path)
        assert self._response.status == 200, await self._response.text()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._response.close()

    async def next(self) -> Json | None:
        """The next event; None at the end of the stream."""
        async with asyncio.timeout(5):
            line = await self._response.content.readline()
        return orjson.loads(line) if line else None


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def api(clock: VirtualClock) -> Registry:
    registry = Registry(clock=clock)
    bootstrap(registry)
    registry.create(registry.resource("apiextensions.k8s.io", "customresourcedefinitions"), None, crd())
    return registry


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with DevCluster(Settings(data_dir=tmp_path, controllers=False, node=False, history=200)) as cluster:
        headers = {"Authorization": f"Bearer {cluster.token}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            client = Client(cluster, session)
            await client.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd())
            yield client
