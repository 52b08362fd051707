"""Publishing: the outcome says what is known, and sending again is always right."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from pathlib import Path

import nkeys  # type: ignore[import-untyped]
import pytest
from nats.js.api import StreamConfig
from pydantic import ValidationError
from structlog.testing import capture_logs

from gryvia_cli.nats_server import NatsServer
from gryvia_common.bus import link
from gryvia_common.bus.connection import Bus, BusSettings
from gryvia_common.bus.jetstream import call, stream_state
from gryvia_common.bus.streams import ensure_stream
from gryvia_common.clock import SystemClock
from gryvia_common.errors import Terminal, Transient

from .conftest import mark, put


async def test_a_state_is_stored_under_the_next_sequence(bus: Bus) -> None:
    first = await put(bus, "a", 1, expected=0)
    second = await put(bus, "a", 2, expected=first.sequence)
    assert (first.outcome, second.outcome) == ("stored", "stored")
    assert second.sequence == first.sequence + 1


async def test_a_lost_race_says_what_the_stream_holds_instead(bus: Bus) -> None:
    winner = await put(bus, "a", 7)
    lost = await put(bus, "a", 6, expected=0)
    assert lost.outcome == "conflict"
    assert lost.sequence == winner.sequence
    assert lost.current is not None
    assert (lost.current.uid, lost.current.version, lost.current.op) == ("uid-a", 7, "applied")


async def test_a_conflict_on_an_empty_subject_says_sequence_zero(bus: Bus) -> None:
    lost = await put(bus, "a", 1, expected=99)
    assert (lost.outcome, lost.sequence, lost.current) == ("conflict", 0, None)


async def test_sending_the_same_again_after_a_lost_answer_is_found_to_be_stored(bus: Bus) -> None:
    first = await put(bus, "a", 1, expected=0)
    again = await put(bus, "a", 1, expected=0)
    assert (again.outcome, again.sequence) == ("stored", first.sequence)


async def test_a_publish_whose_answer_is_lost_is_unknown_and_its_repetition_is_stored_once(
    nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = BusSettings(url=nats_url, storage="memory", timeout=0.3)
    bus = await Bus.connect(settings, name="test", clock=SystemClock())
    await bus.ensure_streams()
    client = bus.link._client
    process, lost = client._process_msg, asyncio.Event()

    async def lose_one(sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        if lost.is_set():
            await process(sid, subject, reply, data, headers)
        lost.set()

    monkeypatch.setattr(client, "_process_msg", lose_one)
    first = await put(bus, "a", 1, expected=0)
    again = await put(bus, "a", 1, expected=0)
    assert (first.outcome, again.outcome, again.sequence) == ("unknown", "stored", 1)
    assert (await stream_state(bus.link, "OBJECTS")).last_sequence == 1
    await bus.close()


async def test_the_same_without_an_expected_sequence_is_a_duplicate(bus: Bus) -> None:
    first = await put(bus, "a", 1)
    again = await put(bus, "a", 1)
    assert (again.outcome, again.sequence) == ("duplicate", first.sequence)


async def test_a_body_above_the_limit_is_refused_with_its_size(bus: Bus) -> None:
    with pytest.raises(Terminal, match=r"above the NATS server's max_payload of 1048576"):
        await bus.publish("gryvia.object.jobs.0.ns.big", b"x" * (bus.max_payload + 1), {})


async def test_stored_headers_lists_each_object_once_without_markers(bus: Bus) -> None:
    for number in range(30):
        await put(bus, f"job-{number % 10}", number + 1)
    await put(bus, "gone", 5, op="deleted")
    await mark(bus)
    stored = [one async for one in bus.stored_headers("gryvia.object.>")]
    assert [one.version for one in stored] == [*range(21, 31), 5]
    assert stored[-1].op == "deleted"
    assert await bus.sync_markers() == {"gryvia.sync.jobs"}


async def test_stored_headers_of_an_empty_stream_ends(bus: Bus) -> None:
    assert [one async for one in bus.stored_headers("gryvia.object.>")] == []


async def test_reading_leaves_no_consumer_behind(bus: Bus) -> None:
    await put(bus, "a")
    async for _ in bus.stored_headers("gryvia.object.>"):
        break
    assert [one async for one in bus.stored_headers("gryvia.object.>")]
    names = await call(bus.link, "CONSUMER.NAMES.OBJECTS", {})
    assert names["total"] == 0


async def test_ensuring_twice_changes_nothing(bus: Bus) -> None:
    before = await stream_state(bus.link, "OBJECTS")
    await bus.ensure_streams()
    assert await stream_state(bus.link, "OBJECTS") == before


async def test_what_correctness_rests_on_is_put_back_and_an_operators_choice_is_left(bus: Bus) -> None:
    config = dict((await stream_state(bus.link, "OBJECTS")).config)
    await call(bus.link, "STREAM.UPDATE.OBJECTS", {**config, "max_msgs_per_subject": 5, "max_bytes": 1 << 30})
    await bus.ensure_streams()
    mended = (await stream_state(bus.link, "OBJECTS")).config
    assert mended["max_msgs_per_subject"] == 1
    assert mended["max_bytes"] == 1 << 30


async def test_a_stream_that_cannot_be_mended_is_an_error_that_names_the_field(bus: Bus) -> None:
    await call(bus.link, "STREAM.CREATE.WORK", {"name": "WORK", "subjects": ["work"], "retention": "workqueue"})
    wanted = StreamConfig(name="WORK", subjects=["work"], retention="limits")  # type: ignore[arg-type]
    with pytest.raises(Terminal, match="retention is 'workqueue' and must be 'limits'") as caught:
        await ensure_stream(bus.link, wanted)
    assert caught.value.reason == "StreamDrift"


async def test_while_nats_is_down_the_outcome_is_unknown_and_afterwards_it_works_again(own_nats: NatsServer) -> None:
    settings = BusSettings(url=own_nats.url, timeout=0.3)
    bus = await Bus.connect(settings, name="test", clock=SystemClock())
    await bus.ensure_streams()
    await own_nats.kill()
    assert (await put(bus, "a")).outcome == "unknown"
    assert not bus.connected
    await own_nats.start(supervise=False)
    async with asyncio.timeout(6):
        await bus.link.until_connected()
        assert (await put(bus, "a")).outcome == "stored"
    assert bus.link.outages == 1
    await bus.close()


async def test_an_outage_is_told_once_and_so_is_its_end(own_nats: NatsServer) -> None:
    bus = await Bus.connect(BusSettings(url=own_nats.url), name="test", clock=SystemClock())
    with capture_logs() as logs:
        await own_nats.kill()
        await bus.link.until_lost(bus.link.epoch)
        # Long enough for several attempts: each takes at most 0.4 s.
        await asyncio.wait((asyncio.create_task(bus.link.until_connected()),), timeout=2.0)
        await own_nats.start(supervise=False)
        async with asyncio.timeout(6):
            await bus.link.until_connected()
    told = [entry["event"] for entry in logs if entry["event"].startswith("bus_")]
    assert told == ["bus_connection_lost", "bus_unreachable", "bus_connection_restored"]
    await bus.close()


async def test_what_waits_for_an_answer_learns_of_a_lost_connection_at_once(own_nats: NatsServer) -> None:
    bus = await Bus.connect(BusSettings(url=own_nats.url, timeout=60), name="test", clock=SystemClock())
    heard = asyncio.Event()

    async def receive(_: object) -> None:
        heard.set()

    await bus.link.subscribe("silent", receive)
    waiting = asyncio.create_task(bus.link.request("silent", b""))
    await heard.wait()
    await own_nats.kill()
    async with asyncio.timeout(2):
        with pytest.raises(Transient, match="connection to NATS was lost"):
            await waiting
    await bus.close()


async def test_a_client_that_the_server_threw_out_comes_back_with_its_new_password(tmp_path: Path) -> None:
    """nats-py closes for ever on a revoked user; the bus replaces the client."""
    server = NatsServer(tmp_path / "nats", config="authorization { users: [{user: jobs, password: old}] }")
    await server.start(supervise=False)
    secret = tmp_path / "password"
    secret.write_text("old")
    settings = BusSettings(url=server.url, user="jobs", password_file=secret)
    bus = await Bus.connect(settings, name="test", clock=SystemClock())
    await bus.ensure_streams()
    epoch = bus.link.epoch
    secret.write_text("new")
    config = server.data_dir / "nats-server.conf"
    config.write_text(config.read_text().replace("password: old", "password: new"))
    assert server.pid is not None
    os.kill(server.pid, signal.SIGHUP)
    async with asyncio.timeout(6):
        await bus.link.until_lost(epoch)
        await bus.link.until_connected()
    assert (await put(bus, "a")).outcome == "stored"
    await bus.close()
    await server.stop()


async def test_a_client_that_does_not_find_its_way_back_is_replaced(
    own_nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_REPLACE_SECONDS", 0.5)
    bus = await Bus.connect(BusSettings(url=own_nats.url), name="test", clock=SystemClock())
    await bus.ensure_streams()
    await own_nats.kill()
    await bus.link.until_lost(bus.link.epoch)
    stuck = bus.link._client._reconnection_task
    assert stuck is not None
    stuck.cancel()
    await own_nats.start(supervise=False)
    async with asyncio.timeout(6):
        await bus.link.until_connected()
    assert (await put(bus, "a")).outcome == "stored"
    await bus.close()


async def test_an_nkey_is_enough_to_connect(tmp_path: Path) -> None:
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    user = nkeys.from_seed(bytearray(seed)).public_key.decode()
    (tmp_path / "user.nk").write_bytes(seed)
    server = NatsServer(tmp_path / "nats", config=f"authorization {{ users: [{{nkey: {user}}}] }}")
    await server.start(supervise=False)
    settings = BusSettings(url=server.url, nkey_file=tmp_path / "user.nk")
    async with asyncio.timeout(6):
        bus = await Bus.connect(settings, name="test", clock=SystemClock())
    await bus.ensure_streams()
    await bus.close()
    await server.stop()


async def test_without_a_stream_it_is_sure_that_nothing_was_stored(bus: Bus) -> None:
    await call(bus.link, "STREAM.DELETE.OBJECTS")
    with pytest.raises(Transient, match="the stream is missing"):
        await put(bus, "a")


async def test_a_stream_made_anew_for_another_cluster_is_empty(nats_url: str) -> None:
    bus = await Bus.connect(BusSettings(url=nats_url, storage="file"), name="test", clock=SystemClock())
    await bus.ensure_streams()
    for _ in range(10):
        await put(bus, "old")
        before = await stream_state(bus.link, "OBJECTS")
        await bus.recreate_objects()
        after = await stream_state(bus.link, "OBJECTS")
        assert (after.messages, after.created != before.created) == (0, True)
    await bus.close()


async def test_giving_up_before_the_server_is_there_leaves_nothing_behind(own_nats: NatsServer) -> None:
    await own_nats.stop()
    settings = BusSettings(url=own_nats.url)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await Bus.connect(settings, name="test", clock=SystemClock())
    await own_nats.start(supervise=False)
    async with asyncio.timeout(5):
        bus = await Bus.connect(settings, name="test", clock=SystemClock())
    await bus.close()
    gc.collect()


def test_credentials_in_a_url_are_not_logged() -> None:
    settings = BusSettings(url="nats://jobs:secret@bus-0:4222, nats://bus-1:4222")
    assert settings.servers == ["nats://jobs:secret@bus-0:4222", "nats://bus-1:4222"]
    assert settings.addresses == ["bus-0:4222", "bus-1:4222"]


def test_a_missing_key_file_is_named() -> None:
    with pytest.raises(ValidationError, match=r"nkey_file\n +Path does not point to a file"):
        BusSettings(nkey_file="/no/such/file")


async def test_closing_while_the_server_is_down_ends_soon(own_nats: NatsServer) -> None:
    bus = await Bus.connect(BusSettings(url=own_nats.url), name="test", clock=SystemClock())
    await own_nats.kill()
    async with asyncio.timeout(4):
        await bus.close()


async def test_five_thousand_changes_by_compare_and_set_in_flight_together(bus: Bus) -> None:
    async def life(name: str) -> None:
        sequence = 0
        for version in range(1, 6):
            published = await put(bus, name, version, expected=sequence)
            assert published.outcome == "stored"
            sequence = published.sequence

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        for number in range(1000):
            tasks.create_task(life(f"job-{number}"))
    assert (await stream_state(bus.link, "OBJECTS")).messages == 1000
