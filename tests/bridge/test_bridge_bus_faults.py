"""What may happen to NATS and to the stream under a running bridge, and to the bridge itself."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest
from scripted_api import AIJOBS, FastClock, ScriptedApi, client, eventually, expected, held, living, published, settle

from gryvia_bridge.bridge import Bridge, run_bridge
from gryvia_bridge.watched import Watched
from gryvia_cli.nats_server import NatsServer
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.bus.jetstream import call
from gryvia_common.bus.objects import object_headers
from gryvia_common.bus.streams import OBJECTS
from gryvia_common.bus.subjects import object_subject, partition_of, sync_subject
from gryvia_common.clock import SystemClock
from gryvia_common.errors import GryviaError

ONE = [Watched(AIJOBS)]


@pytest.fixture
async def own_bus(own_nats: NatsServer):
    connected = await Bus.connect(BusSettings(url=own_nats.url), name="test", clock=SystemClock())
    await connected.ensure_streams()
    yield connected
    await connected.close()


async def marker(bus: Bus) -> bool:
    return sync_subject("gryviaaijobs") in await bus.sync_markers()


@pytest.mark.parametrize("what", ["deleted", "purged", "one message"])
async def test_a_stream_that_loses_messages_is_filled_again_within_seconds(what, api, bus, start_bridge):
    for number in range(10):
        await api.put(AIJOBS, f"job-{number}")
    await start_bridge(watched=ONE)
    began = asyncio.get_running_loop().time()
    if what == "deleted":
        await call(bus.link, f"STREAM.DELETE.{OBJECTS}")
    elif what == "purged":
        await call(bus.link, f"STREAM.PURGE.{OBJECTS}")
    else:
        subject = object_subject("gryviaaijobs", partition_of("ns", "job-3"), "ns", "job-3")
        await call(bus.link, f"STREAM.PURGE.{OBJECTS}", {"filter": subject})

    async def healed() -> bool:
        try:
            return await marker(bus) and await living(bus) == expected(api)
        except GryviaError:
            return False  # there is no stream at the moment

    await eventually(healed)
    # A purge can be made good only when the stream's duplicate window (1 s) is over.
    assert asyncio.get_running_loop().time() - began < 3
    await api.put(AIJOBS, "after")
    await settle(bus, api)


async def test_a_foreign_object_in_the_stream_is_found_by_the_comparison(api, bus, start_bridge):
    await start_bridge(watched=ONE, speed=500.0)
    subject = object_subject("gryviaaijobs", 3, "ns", "ghost")
    await bus.publish(subject, b"{}", object_headers("uid-ghost", 50, "applied"))

    async def gone() -> bool:
        return (await held(bus))["ghost"][2] == "deleted"

    await eventually(gone, 20)


async def test_what_is_no_object_over_an_objects_state_is_replaced_by_the_comparison(api, bus, start_bridge):
    """Such as an answer of JetStream that somebody has sent there: a service may not publish objects, but choose a reply."""
    await api.put(AIJOBS, "a")
    await start_bridge(watched=ONE, speed=500.0)
    await settle(bus, api)
    await bus.publish(object_subject("gryviaaijobs", partition_of("ns", "a"), "ns", "a"), b"{}", {})
    assert await held(bus) == {}

    async def replaced() -> bool:
        return await held(bus) == expected(api)

    await eventually(replaced, 20)


async def test_nats_killed_and_started_again_while_changes_go_on(api, kube, own_nats, own_bus, start_bridge):
    await start_bridge(on=own_bus, watched=ONE)
    for number in range(50):
        await api.put(AIJOBS, f"early-{number}")
    await own_nats.kill()
    for number in range(50):
        await api.put(AIJOBS, f"late-{number}")
    await own_nats.start(supervise=False)
    await settle(own_bus, api, 20)


async def test_nats_wiped_while_it_is_down(api, kube, own_nats, own_bus, start_bridge):
    for number in range(20):
        await api.put(AIJOBS, f"job-{number}")
    await start_bridge(on=own_bus, watched=ONE)
    await own_nats.kill()
    for path in sorted((own_nats.data_dir).rglob("*"), reverse=True):
        if path.is_file() and "jetstream" in str(path):
            path.unlink()
    await own_nats.start(supervise=False)

    async def healed() -> bool:
        try:
            return await marker(own_bus) and await living(own_bus) == expected(api)
        except GryviaError:
            return False

    await eventually(healed, 20)


async def test_two_bridges_at_once_do_no_harm(api, kube, bus, nats_as, start_bridge):
    other_bus = await Bus.connect(nats_as("bridge"), name="other", clock=SystemClock())
    try:
        first = await start_bridge(watched=ONE)
        second = await start_bridge(watched=ONE, on=other_bus)
        versions: dict[str, int] = {}
        for turn in range(20):
            for number in range(10):
                await api.put(AIJOBS, f"job-{number}", spec={"turn": turn})
            if turn % 5 == 4:
                await api.delete(AIJOBS, f"job-{turn % 10}")
            for name, (_, version, _) in (await held(bus)).items():
                assert version >= versions.get(name, 0), "the version of a subject went down"
                versions[name] = version
        await settle(bus, api)
        assert published(first) + published(second) > 0
    finally:
        await start_bridge.stop()
        await other_bus.close()


async def test_a_bridge_killed_in_mid_publish_is_made_good_by_the_next(api, bus, nats_as, start_bridge, tmp_path):
    for number in range(400):
        await api.put(AIJOBS, f"job-{number}")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        f"clusters: [{{name: c, cluster: {{server: '{api.url}'}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
    )
    environment = {
        "GRYVIA_KUBE_KUBECONFIG": str(kubeconfig),
        "GRYVIA_NATS_URL": nats_as("bridge").url,
        "GRYVIA_NATS_INBOX_PREFIX": nats_as("bridge").inbox,
        "GRYVIA_BRIDGE_LEASE": "false",
        "PATH": str(Path(sys.executable).parent),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gryvia_bridge", env=environment, stderr=asyncio.subprocess.DEVNULL
    )

    async def some_are_stored() -> bool:
        return len(await held(bus)) > 0

    await eventually(some_are_stored, 20)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    for number in range(0, 400, 2):
        await api.delete(AIJOBS, f"job-{number}")
    await start_bridge(watched=ONE)
    await settle(bus, api)


async def test_an_owner_change_moves_the_object_to_another_partition_and_leaves_nothing_behind(api, bus, start_bridge):
    from gryvia_common.kube.resources import PODS

    def owned_by(name: str) -> dict[str, object]:
        return {"annotations": {"gryvia.io/owner": f"gryviaaijobs/ns/{name}/uid-9"}}

    await api.put(PODS, "p", metadata=owned_by("one"))
    await start_bridge(watched=[Watched(PODS)])
    await api.put(PODS, "p", metadata=owned_by("two"))
    old = object_subject("pods", partition_of("ns", "one"), "ns", "p")
    new = object_subject("pods", partition_of("ns", "two"), "ns", "p")

    async def moved() -> bool:
        ops = {stored.subject: stored.op async for stored in bus.stored_headers("gryvia.object.pods.>")}
        return ops == {old: "deleted", new: "applied"}

    await eventually(moved)


async def test_another_cluster_under_the_same_address_begins_a_new_stream(api, bus, start_bridge):
    await api.put(AIJOBS, "of-the-old-one")
    await start_bridge(watched=ONE)
    api.objects.clear()
    api.history.clear()
    api.cluster_uid, api.version = "cluster-2", 5
    await api.put(AIJOBS, "of-the-new-one")
    api.forget()
    await api.drop_watches()

    async def only_the_new_one() -> bool:
        try:
            return set(await held(bus)) == {"of-the-new-one"} and await marker(bus)
        except GryviaError:
            return False

    await eventually(only_the_new_one)


async def test_a_cancelled_bridge_ends_at_once_even_when_nats_is_away(api: ScriptedApi, own_nats, own_bus):
    async with client(api.url) as kube:
        bridge = Bridge(kube, own_bus, FastClock(), watched=ONE)
        task = asyncio.create_task(run_bridge(bridge, lease=None, identity="test"))

        async def synced() -> bool:
            return bool(bridge.state.types) and bridge.state.types["gryviaaijobs"].synced

        await eventually(synced)
        await own_nats.kill()
        await api.put(AIJOBS, "a")
        task.cancel()
        async with asyncio.timeout(2):
            await asyncio.gather(task, return_exceptions=True)
