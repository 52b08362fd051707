"""The embedded NATS server: ready when it says so, reachable from this machine only, back after a crash."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nats
import nats.errors
import pytest
import structlog

from gryvia_cli.nats_server import NatsServer, external_url
from gryvia_common.errors import Terminal


async def test_a_started_server_takes_a_stream_at_once_and_keeps_it(own_nats: NatsServer) -> None:
    client = await nats.connect(own_nats.url)
    await client.jetstream().add_stream(name="S", subjects=["s"])
    await client.jetstream().publish("s", b"kept")
    await client.close()
    await own_nats.stop()
    assert own_nats.pid is None
    await own_nats.start(supervise=False)
    client = await nats.connect(own_nats.url)
    assert (await client.jetstream().get_last_msg("S", "s")).data == b"kept"
    await client.close()


def listening_addresses(port: int) -> set[str]:
    inodes = Path("/proc/net/tcp").read_text().splitlines()[1:]
    addresses = {line.split()[1] for line in inodes if line.split()[3] == "0A"}
    return {address.split(":")[0] for address in addresses if address.endswith(f":{port:04X}")}


async def test_it_listens_on_this_machine_only(own_nats: NatsServer) -> None:
    assert listening_addresses(own_nats.port) == {"0100007F"}


async def test_a_taken_port_is_one_clear_sentence(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(Terminal, match=f"port {port} on 127.0.0.1 is in use: end the program") as caught:
            await NatsServer(tmp_path, port).start()
    assert caught.value.reason == "PortInUse"


async def test_a_crash_is_followed_by_a_restart_on_the_same_port(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    await server.start()
    url, first = server.url, server.pid
    assert first is not None
    back = asyncio.Event()

    async def reconnected() -> None:
        back.set()

    client = await nats.connect(url, reconnect_time_wait=0.05, error_cb=_quiet, reconnected_cb=reconnected)
    os.kill(first, signal.SIGKILL)
    async with asyncio.timeout(20):
        await back.wait()
        # The client is there at once; the server counts as restarted when it has answered its own question, too.
        while server.restarts == 0:
            await asyncio.sleep(0.01)
    assert server.pid not in (None, first)
    assert server.restarts == 1
    assert server.url == url
    await client.close()
    await server.stop()


async def test_a_server_left_behind_by_a_killed_platform_is_ended_first(tmp_path: Path) -> None:
    left = NatsServer(tmp_path)
    await left.start(supervise=False)
    server = NatsServer(tmp_path)
    await server.start(supervise=False)
    assert left.pid is None or await asyncio.wait_for(left._process.wait(), 5) is not None  # type: ignore[union-attr]
    assert server.pid is not None
    await server.stop()


async def test_a_stranger_with_the_noted_process_number_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "nats-server.pid").write_text(str(os.getpid()))
    server = NatsServer(tmp_path)
    await server.start(supervise=False)
    await server.stop()


async def test_a_bad_configuration_is_told_in_the_servers_own_words(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, config="no_such_option: 1")
    with pytest.raises(Terminal, match="no_such_option"):
        await server.start()


def test_somebody_elses_server_is_taken_from_the_environment() -> None:
    assert external_url({"GRYVIA_NATS_URL": "nats://bus:4222"}) == "nats://bus:4222"
    assert external_url({}) == ""


async def _quiet(_: Exception) -> None:
    """The outage is the point of the test."""


async def test_a_damaged_store_is_put_aside_and_the_server_starts_empty(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    await server.start(supervise=False)
    client = await nats.connect(server.url)
    await client.jetstream().add_stream(name="S", subjects=["s"])
    await client.close()
    await server.stop()
    for file in server.store.rglob("*"):
        if file.is_file():
            file.write_bytes(os.urandom(3000))
    await server.start(supervise=False)
    client = await nats.connect(server.url)
    assert await client.jsm().streams_info() == []
    await client.close()
    await server.stop()
    assert (tmp_path / "jetstream.damaged").is_dir()


async def test_without_keeping_a_start_forgets_what_streams_held(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    await server.start(supervise=False)
    client = await nats.connect(server.url)
    await client.jetstream().add_stream(name="S", subjects=["s"])
    await client.close()
    await server.stop()
    await server.start(supervise=False, keep=False)
    client = await nats.connect(server.url)
    assert await client.jsm().streams_info() == []
    await client.close()
    await server.stop()


async def test_ctrl_c_in_the_terminal_does_not_reach_it(own_nats: NatsServer) -> None:
    assert own_nats.pid is not None
    assert os.getpgid(own_nats.pid) != os.getpgid(0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own in memory."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a file system of its own takes root: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Not a byte is left."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


async def stored(client: nats.NATS, data: bytes) -> bool:
    try:
        await client.jetstream().publish("s", data, timeout=0.5)
    except (nats.errors.Error, TimeoutError):
        return False
    return True


async def test_a_server_whose_disk_was_full_stores_again_once_there_is_room(small_disk: Path) -> None:
    """It would not by itself; while there is no room it is left alone, and the messages it had are kept."""
    with structlog.testing.capture_logs() as logs:
        server = NatsServer(small_disk / "nats")
        await server.start()
        client = await nats.connect(server.url, reconnect_time_wait=0.05, max_reconnect_attempts=-1, error_cb=_quiet)
        await client.jetstream().add_stream(name="S", subjects=["s"])
        assert await stored(client, b"before")
        fill(small_disk / "filler")
        async with asyncio.timeout(30):
            while await stored(client, bytes(1000)):
                """What the server had reserved is used up first."""
            while not [one for one in logs if one["event"] == "nats_cannot_write"]:
                await asyncio.sleep(0.05)
            assert not await stored(client, b"during")
            assert server.restarts == 0
            (small_disk / "filler").unlink()
            while not await stored(client, b"after"):
                await asyncio.sleep(0.05)
            while server.restarts == 0:
                await asyncio.sleep(0.01)
        assert (await client.jetstream().get_msg("S", 1)).data == b"before"
        assert (await client.jetstream().get_last_msg("S", "s")).data == b"after"
        await client.close()
        await server.stop()
    said = [one["event"] for one in logs if one["log_level"] != "info"]
    assert said == ["nats_cannot_write", "nats_restarted_to_write_again", "nats_server_ended"]
