"""The bridge between devcluster and a real NATS: the path of the scripted tests on a server that was not written for them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from scripted_api import FastClock, client, eventually, held, published

from gryvia_bridge.bridge import Bridge, run_bridge
from gryvia_bridge.lease import LeaseSettings
from gryvia_bridge.watched import Watched, children_of_type
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.pull import read_to_end
from gryvia_common.bus.streams import OBJECTS
from gryvia_common.bus.subjects import objects_filter
from gryvia_common.errors import Gone, Transient
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.crd import crd
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS, CRDS, LEASES, SECRETS
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings

MANAGED = {"app.kubernetes.io/managed-by": "gryvia"}
CHILDREN = [children_of_type(CONFIG_MAPS)]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[DevCluster]:
    async with DevCluster(Settings(data_dir=tmp_path / "c", controllers=False, node=False, history=50)) as made:
        yield made


@pytest.fixture
async def kube(cluster: DevCluster) -> AsyncIterator[Kube]:
    async with client(cluster.url, cluster.token) as made:
        yield made


def config_map(name: str, labels: dict[str, str] = MANAGED, **data: str) -> Json:
    meta = {"namespace": "default", "name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


async def same(kube: Kube, bus: Bus) -> bool:
    listed = await kube.list(CONFIG_MAPS, labels="app.kubernetes.io/managed-by=gryvia")
    wanted = {o["metadata"]["name"]: (o["metadata"]["uid"], int(o["metadata"]["resourceVersion"])) for o in listed}
    return wanted == {
        n: (uid, version) for n, (uid, version, op) in (await held(bus, "configmaps")).items() if op == "applied"
    }


async def test_children_and_only_they_with_every_change_and_nothing_on_restart(kube, bus, start_bridge):
    for number in range(20):
        await kube.create(CONFIG_MAPS, config_map(f"c{number}"))
    await kube.create(CONFIG_MAPS, config_map("not-ours", labels={}))
    await start_bridge(watched=CHILDREN)
    await kube.patch(CONFIG_MAPS, "default", "c1", {"data": {"a": "1"}})
    await kube.delete(CONFIG_MAPS, "default", "c2")
    await kube.patch(CONFIG_MAPS, "default", "c3", {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}})
    await eventually(lambda: same(kube, bus))
    assert (await held(bus, "configmaps"))["c3"][2] == "deleted"
    assert "not-ours" not in await held(bus, "configmaps")
    await start_bridge.stop()
    assert published(await start_bridge(watched=CHILDREN)) == 0


async def test_the_history_running_out_while_cut_off_is_a_410_and_healed(kube, bus, start_bridge):
    await kube.create(CONFIG_MAPS, config_map("gone"))
    await kube.create(CONFIG_MAPS, config_map("kept"))
    await start_bridge(watched=CHILDREN)
    await eventually(lambda: same(kube, bus))
    await start_bridge.stop()
    await kube.delete(CONFIG_MAPS, "default", "gone")
    for number in range(80):  # more than the server remembers
        await kube.patch(CONFIG_MAPS, "default", "kept", {"data": {"n": str(number)}})
    await start_bridge(watched=CHILDREN)
    await eventually(lambda: same(kube, bus))
    assert (await held(bus, "configmaps"))["gone"][2] == "deleted"


async def test_a_kind_whose_crd_comes_late(kube, bus, start_bridge):
    bridge = await start_bridge(watched=[Watched(AI_JOB.resource), *CHILDREN], wait=False)

    async def waits() -> bool:
        types = bridge.state.types
        return bool(types) and types["configmaps"].synced and bool(types["gryviaaijobs"].error)

    await eventually(waits)
    await kube.create(CRDS, crd(AI_JOB))
    job = {
        "apiVersion": AI_JOB.resource.api_version,
        "kind": AI_JOB.name,
        "metadata": {"namespace": "default", "name": "j"},
        "spec": {"type": "training", "image": "busybox", "gpus": 0, "command": ["true"]},
    }

    async def created() -> bool:
        with contextlib.suppress(Gone, Transient):
            await kube.create(AI_JOB.resource, job)
            return True
        return False

    await eventually(created)

    async def there() -> bool:
        return "j" in await held(bus)

    await eventually(there)


async def test_no_secret_ever_gets_on_the_bus(kube, bus, start_bridge):
    meta = {"namespace": "default", "name": "s", "labels": MANAGED}
    note = {"kubectl.kubernetes.io/last-applied-configuration": '{"stringData":{"password":"hunter2"}}'}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {**meta, "annotations": note}}
    await kube.create(SECRETS, {**secret, "stringData": {"password": "hunter2"}})
    await start_bridge(watched=[children_of_type(SECRETS)])
    first = (await held(bus, "secrets"))["s"][1]
    await kube.patch(SECRETS, "default", "s", {"stringData": {"password": "hunter3"}})

    async def second() -> bool:
        stored = (await held(bus, "secrets")).get("s")
        return stored is not None and stored[1] > first

    await eventually(second)
    messages = [m async for m in read_to_end(bus.link, OBJECTS, [objects_filter("secrets")])]
    assert messages
    assert all(b"hunter" not in m.body and b'"data"' not in m.body and b'"kind":"Secret"' in m.body for m in messages)


async def test_two_with_a_lease_one_works_and_the_other_takes_over(kube, bus):
    lease = LeaseSettings("default")
    bridges = [Bridge(kube, bus, FastClock(), watched=CHILDREN) for _ in range(2)]
    tasks = [
        asyncio.create_task(run_bridge(bridge, lease=lease, identity=f"b{number}"))
        for number, bridge in enumerate(bridges)
    ]

    async def one_is_active() -> bool:
        active = [b for b in bridges if b.state.role == "active" and b.state.types["configmaps"].synced]
        return len(active) == 1

    try:
        await eventually(one_is_active)
        first = next(i for i, bridge in enumerate(bridges) if bridge.state.role == "active")
        tasks[first].cancel()
        await asyncio.wait([tasks[first]])
        await eventually(one_is_active)
        assert bridges[1 - first].state.role == "active"
        assert (await kube.get(LEASES, "default", "gryvia-bridge"))["spec"]["holderIdentity"] == f"b{1 - first}"
        await kube.create(CONFIG_MAPS, config_map("c"))
        await eventually(lambda: same(kube, bus))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_process_is_ready_measures_and_ends_at_sigterm(
    cluster, kube, nats_as, bus, tmp_path, unused_tcp_port
):
    await kube.create(CRDS, crd(AI_JOB))
    await kube.create(CONFIG_MAPS, config_map("c"))
    await cluster.write_kubeconfig(tmp_path / "kubeconfig")
    environment = {
        "GRYVIA_KUBE_KUBECONFIG": str(tmp_path / "kubeconfig"),
        "GRYVIA_NATS_URL": nats_as("bridge").url,
        "GRYVIA_NATS_INBOX_PREFIX": nats_as("bridge").inbox,
        "GRYVIA_HTTP_PORT": str(unused_tcp_port),
        "GRYVIA_BRIDGE_LEASE_NAMESPACE": "default",
        "PATH": str(Path(sys.executable).parent),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gryvia_bridge", env=environment, stderr=asyncio.subprocess.PIPE
    )
    try:
        await eventually(lambda: same(kube, bus), 20)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{unused_tcp_port}") as session:
            async with session.get("/readyz") as answer:
                assert "bus" in (await answer.json())["checks"]
            async with session.get("/metrics") as answer:
                text = await answer.text()
        assert 'bridge_published_total{op="applied",plural="configmaps"} 1.0' in text
        assert "bridge_active 1.0" in text
        assert 'bridge_objects{plural="configmaps"} 1.0' in text
        assert "bridge_lag_seconds 0.0" in text
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(5):
            await process.communicate()
        assert process.returncode == 0
        assert (await kube.get(LEASES, "default", "gryvia-bridge"))["spec"]["holderIdentity"] == ""
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
