"""The cluster as a whole: what survives a restart, and how it says that it cannot start."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from gryvia_devcluster.api.server import PortTaken
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.settings import Settings
from gryvia_devcluster.store import DamagedState

SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
CRD: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


def settings(folder: Path, **more: Any) -> Settings:
    return Settings(data_dir=folder, controllers=False, node=False, **more)


async def test_objects_types_and_the_token_survive_a_restart(tmp_path: Path) -> None:
    async with DevCluster(settings(tmp_path, persist=True)) as first:
        first.api.create(first.api.resource("apiextensions.k8s.io", "customresourcedefinitions"), None, CRD)
        rt = first.api.resource("example.com", "widgets")
        made = first.api.create(rt, "default", {"metadata": {"name": "a"}, "spec": {"x": 1}})
    async with DevCluster(settings(tmp_path, persist=True)) as second:
        assert second.token == first.token
        rt = second.api.resource("example.com", "widgets")
        assert second.api.get(rt, "default", "a") == made
        newer = second.api.create(rt, "default", {"metadata": {"name": "b"}})
        assert int(newer["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
        with pytest.raises(ApiError) as refused:
            second.api.store.cursor("widgets.example.com", int(made["metadata"]["resourceVersion"]))
        assert refused.value.reason == "Expired"


async def test_without_persistence_a_restart_begins_empty(tmp_path: Path) -> None:
    async with DevCluster(settings(tmp_path)) as first:
        first.api.create(first.api.resource("", "configmaps"), "default", {"metadata": {"name": "a"}})
    async with DevCluster(settings(tmp_path)) as second:
        assert second.api.list(second.api.resource("", "configmaps"))[0] == []


async def test_a_new_cluster_has_its_namespaces_accounts_and_class(tmp_path: Path) -> None:
    async with DevCluster(settings(tmp_path)) as cluster:
        api = cluster.api
        namespaces, _ = api.list(api.resource("", "namespaces"))
        assert [obj["metadata"]["name"] for obj in namespaces] == [
            "default",
            "kube-node-lease",
            "kube-public",
            "kube-system",
        ]
        assert len(api.list(api.resource("", "serviceaccounts"))[0]) == 4
        assert api.list(api.resource("storage.k8s.io", "storageclasses"))[0][0]["metadata"]["name"] == "standard"


async def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"^Cannot listen on 127\.0\.0\.1:{port} \(.+\): .+\.$"):
            async with DevCluster(settings(tmp_path, port=port)):
                raise AssertionError("it started")


async def test_a_damaged_state_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(DamagedState, match=r"^The state file .* is damaged .*\.$"):
        async with DevCluster(settings(tmp_path, persist=True)):
            raise AssertionError("it started")


async def test_the_kubeconfig_is_for_its_owner_only(tmp_path: Path) -> None:
    async with DevCluster(settings(tmp_path)) as cluster:
        await cluster.write_kubeconfig(tmp_path / "deep" / "config")
        config = orjson.loads((tmp_path / "deep" / "config").read_bytes())
        assert stat.S_IMODE(os.stat(tmp_path / "deep" / "config").st_mode) == 0o600
        server = config["clusters"][0]["cluster"]["server"]
        assert config["users"][0]["user"]["token"] == cluster.token
        async with aiohttp.ClientSession() as session, session.get(f"{server}/api/v1/namespaces") as response:
            assert response.status == 200


async def test_stopping_ends_open_watches(tmp_path: Path) -> None:
    async with aiohttp.ClientSession() as session:
        async with DevCluster(settings(tmp_path)) as cluster:
            path = f"{cluster.url}/token/{cluster.token}/api/v1/pods?watch=1"
            watching = await session.get(path)
            assert watching.status == 200
        async with asyncio.timeout(3), watching:
            with pytest.raises(aiohttp.ClientError):
                await watching.content.read()
