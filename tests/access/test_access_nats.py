"""What NATS refuses: each violation that a service that has been broken into would try first. The server judges, with the users of
the embedded platform."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client

from gryvia_cli.nats_server import NatsServer
from gryvia_cli.platform.bus_users import make_users, settings_of, users
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.events import JobFailed
from gryvia_common.bus.follow import ObjectMessage, follow
from gryvia_common.bus.leases import NatsLeases
from gryvia_common.bus.objects import object_headers
from gryvia_common.bus.subscribe import subscribe_events
from gryvia_common.clock import SystemClock
from gryvia_common.errors import Transient

OBJECT = "gryvia.object.gryviaaijobs.3.team.job"
CREATE_OBJECTS = "$JS.API.STREAM.CREATE.OBJECTS"


@dataclass
class Stranger:
    """A plain client as one of the users, and what the server told it."""

    client: Client
    errors: asyncio.Queue[str]

    async def refusal(self, subject: str, *, subscribe: bool = False) -> str:
        """TimeoutError when there is none."""
        if subscribe:
            await self.client.subscribe(subject)
        else:
            await self.client.publish(subject, b"{}")
        async with asyncio.timeout(5):
            return await self.errors.get()


@dataclass
class Server:
    nats: NatsServer
    passwords: Path
    stack: AsyncExitStack

    async def bus(self, user: str) -> Bus:
        bus = await Bus.connect(settings_of(self.passwords, self.nats.url, user), name=user, clock=SystemClock())
        self.stack.push_async_callback(bus.close)
        return bus

    async def stranger(self, user: str) -> Stranger:
        errors: asyncio.Queue[str] = asyncio.Queue()

        async def note(error: Exception) -> None:
            errors.put_nowait(str(error))

        password = (self.passwords / user).read_text().strip()
        client = await nats.connect(self.nats.url, user=user, password=password, error_cb=note)
        self.stack.push_async_callback(client.close)
        return Stranger(client, errors)


class Recorder:
    """A FollowHandler that keeps names."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.complete = asyncio.Event()

    def reset(self) -> None:
        self.names.clear()

    def received(self, message: ObjectMessage) -> None:
        self.names.append(message.name)

    def synced(self) -> None:
        self.complete.set()


def job_failed() -> JobFailed:
    return JobFailed(namespace="team", name="job", uid="u", generation=1, phase="Failed")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with AsyncExitStack() as stack:
        passwords = tmp_path / "bus"
        made = NatsServer(tmp_path / "nats", config=make_users(passwords))
        await made.start(supervise=False)
        stack.push_async_callback(made.stop)
        running = Server(made, passwords, stack)
        await (await running.bus("bridge")).ensure_streams()
        yield running


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("jobs", OBJECT),
        ("jobs", "gryvia.sync.gryviaaijobs"),
        ("jobs", "gryvia.event.tuner.completed.team.study"),
        ("tuner", "gryvia.event.job.failed.team.job"),
        ("jobs", "$KV.gryvia-claims.tuner"),
        ("jobs", "$KV.gryvia-members.tuner.a.1"),
        ("jobs", "gryvia.members.tuner"),
        ("jobs", CREATE_OBJECTS),
        ("jobs", "$JS.API.STREAM.UPDATE.KV_gryvia-claims"),
        ("jobs", "$JS.API.STREAM.PURGE.KV_gryvia-members"),
        ("jobs", "$JS.API.STREAM.DELETE.OBJECTS"),
        ("jobs", "$JS.API.CONSUMER.NAMES.OBJECTS"),
        ("jobs", "$JS.API.CONSUMER.CREATE.EVENTS.x"),
        ("jobs", "_INBOX_tuner.x.1"),
        ("bridge", "gryvia.event.job.failed.team.job"),
        ("bridge", "$JS.API.STREAM.DELETE.EVENTS"),
        ("reader", OBJECT),
        ("reader", "gryvia.event.job.failed.team.job"),
        ("reader", "$JS.API.CONSUMER.CREATE.OBJECTS.x"),
        ("reader", "$JS.API.STREAM.MSG.GET.OBJECTS"),
        ("reader", "$JS.API.STREAM.PURGE.EVENTS"),
    ],
)
async def test_nobody_says_what_is_not_theirs_to_say(server: Server, user: str, subject: str) -> None:
    stranger = await server.stranger(user)
    assert f'permissions violation for publish to "{subject}"'.lower() in (await stranger.refusal(subject)).lower()


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("jobs", "_INBOX_tuner.>"),
        ("jobs", "_INBOX.>"),
        ("jobs", ">"),
        ("jobs", "gryvia.object.>"),
        ("jobs", "gryvia.members.tuner"),
        ("jobs", "$JS.EVENT.ADVISORY.>"),
        ("bridge", "_INBOX_jobs.>"),
        ("reader", "gryvia.event.>"),
        ("reader", "_INBOX_jobs.>"),
    ],
)
async def test_nobody_hears_what_is_not_meant_for_them(server: Server, user: str, subject: str) -> None:
    stranger = await server.stranger(user)
    said = (await stranger.refusal(subject, subscribe=True)).lower()
    assert f'permissions violation for subscription to "{subject}"'.lower() in said


async def test_an_answer_of_jetstream_sent_astray_is_taken_for_nothing(server: Server) -> None:
    """NATS judges to whom one speaks, not where one lets JetStream answer, so a broken service can put such an answer into a
    stream. It has none of the headers that make an object or an event, and readers pass over it."""
    stranger, reader = await server.stranger("jobs"), await server.bus("reader")
    event = "gryvia.event.tuner.completed.team.study"
    for place in (OBJECT, event):
        await stranger.client.publish("$JS.API.STREAM.INFO.OBJECTS", reply=place)
    bridge = await server.bus("bridge")
    headers = object_headers("uid", 7, "applied")
    await bridge.publish(OBJECT.removesuffix("job") + "other", b"{}", headers)
    await bridge.publish("gryvia.sync.gryviaaijobs", b"", {})
    seen = Recorder()
    following = asyncio.create_task(follow(bridge, ["gryviaaijobs"], seen, clock=SystemClock()))
    async with asyncio.timeout(10):
        await seen.complete.wait()
    following.cancel()
    assert seen.names == ["other"]
    jobs = await server.bus("jobs")
    await jobs.emit(job_failed(), source="jobs", at=datetime.now(UTC))
    events = subscribe_events(reader, since="all")
    async with asyncio.timeout(10):
        assert (await anext(events)).type == "gryvia.job.failed"
    await events.aclose()


@pytest.mark.parametrize("credentials", ["", '"user": "admin", "pass": "admin"'])
async def test_nobody_is_let_in_without_a_password(server: Server, credentials: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.nats.port)
    await reader.readline()
    writer.write(f"CONNECT {{{credentials}}}\r\nPING\r\n".encode())
    assert await reader.readline() == b"-ERR 'Authorization Violation'\r\n"
    writer.close()
    await writer.wait_closed()


async def test_what_is_theirs_is_not_refused(server: Server) -> None:
    """Its own events, leases and pokes; the reader reads the event."""
    jobs, reader = await server.bus("jobs"), await server.bus("reader")
    leases = NatsLeases(jobs, "jobs")
    await leases.renew("a/1")
    assert await leases.live() == {"a/1"}
    await leases.leave("a/1")
    assert await leases.live() == frozenset()
    await leases.write_claims({0: "a/1"}, 0)
    poked = asyncio.Event()
    await leases.listen(poked.set)
    await leases.poke()
    await jobs.emit(job_failed(), source="jobs", at=datetime.now(UTC))
    events = subscribe_events(reader, since="all")
    async with asyncio.timeout(10):
        await poked.wait()
        assert (await anext(events)).name == "job"
    await events.aclose()
    assert "Violation" not in server.nats.log_file.read_text()


async def test_a_refusal_is_an_error_in_the_log_of_who_is_refused(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = await server.bus("jobs")
    with pytest.raises(Transient):
        await jobs.link.request(OBJECT, b"{}", timeout=0.5)
    logged = capsys.readouterr().out
    assert "bus_permission_violation" in logged
    assert "error" in logged


async def test_passwords_are_random_and_nobody_else_can_read_them(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [*server.passwords.iterdir(), server.nats.config_file]
    assert {file.name for file in files} == {*users(), server.nats.config_file.name}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(server.passwords.stat().st_mode) == 0o700
    secrets = {(server.passwords / user).read_text().strip() for user in users()}
    assert len(secrets) == len(users())
    await server.bus("jobs")
    process = Path("/proc") / str(server.nats.pid)
    told = [
        server.nats.log_file.read_text(),
        capsys.readouterr().out,
        *((process / name).read_text() for name in ("cmdline", "environ") if os.path.exists(process / name)),
    ]
    assert not any(secret in text for text in told for secret in secrets)
    make_users(server.passwords)
    assert not secrets & {(server.passwords / user).read_text().strip() for user in users()}


async def test_the_file_for_a_cluster_has_the_same_permissions_and_takes_passwords_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in users():
        monkeypatch.setenv(f"GRYVIA_NATS_{user.upper()}_PASSWORD", f"of-{user}")
    permissions = (Path(__file__).parents[2] / "deploy" / "nats" / "permissions.conf").read_text()
    server = NatsServer(tmp_path / "nats", config=permissions)
    await server.start(supervise=False)
    try:
        bridge = tmp_path / "bridge"
        bridge.write_text("of-bridge")
        settings = settings_of(tmp_path, server.url, "bridge")
        bus = await Bus.connect(settings, name="bridge", clock=SystemClock())
        await bus.ensure_streams()
        await bus.close()
    finally:
        await server.stop()


@pytest.mark.parametrize(
    "subject",
    ["gryvia.object", "gryvia.sync", "$JS.API.STREAM.CREATE", "$JS.API.STREAM.UPDATE", "$JS.API.STREAM.DELETE"],
)
def test_who_may_write_objects_and_make_streams_is_the_bridge_alone(subject: str) -> None:
    limited = {user: permissions for user, permissions in users().items() if permissions is not None}
    allowed = [user for user, may in limited.items() if any(one.startswith(subject) for one in may.publish)]
    assert allowed == ["bridge"]
