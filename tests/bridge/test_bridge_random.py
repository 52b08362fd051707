"""A randomised server against a model: whatever happens in whatever order, the stream ends up as the API server is, the version of a
subject never goes down, and no state is published that never was."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from aiohttp import web
from scripted_api import AIJOBS, ScriptedApi, answers, eventually, expected, living, reset, sends, settle, status

from gryvia_bridge.watched import Watched
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.follow import ObjectMessage, follow
from gryvia_common.bus.jetstream import call
from gryvia_common.bus.streams import OBJECTS
from gryvia_common.clock import SystemClock
from gryvia_common.errors import Gone


class History:
    """A FollowHandler that checks every message against what the server ever said."""

    def __init__(self, api: ScriptedApi) -> None:
        self._api = api
        self.versions: dict[str, int] = {}
        self.wrong: list[str] = []

    def reset(self) -> None:
        self.versions.clear()

    def received(self, message: ObjectMessage) -> None:
        if message.version < self.versions.get(message.name, 0):
            self.wrong.append(f"{message.name} went from {self.versions[message.name]} to {message.version}")
        self.versions[message.name] = message.version
        said = {(version, obj["metadata"]["uid"]) for version, _, obj in self._api.history[message.plural]}
        if message.op == "applied" and (message.version, message.uid) not in said:
            self.wrong.append(f"{message.name} {message.version} {message.uid} never was")

    def synced(self) -> None:
        return


FAULTS = [
    answers(lambda: status(410, "Expired", "too old")),
    answers(lambda: status(500, "InternalError", "boom")),
    answers(lambda: status(429, "TooManyRequests", "slow", **{"Retry-After": "1"})),
    answers(lambda: web.Response(status=502, text="<html>", content_type="text/html")),
    answers(lambda: web.Response(text="<html>", content_type="application/json")),
    sends(b'{"type":"ADDED","object":{"metadata":{"na', then="reset"),
    sends(b"", then="close"),
    reset,
]


@pytest.mark.parametrize("seed", range(12))
async def test_random_lives_of_server_stream_and_bridge(seed: int, api: ScriptedApi, bus: Bus, start_bridge):
    chance = random.Random(seed)
    api.page = 7
    await start_bridge(watched=[Watched(AIJOBS)], speed=200.0)
    history = History(api)
    follower = asyncio.create_task(follow(bus, ["gryviaaijobs"], history, clock=SystemClock()))
    try:
        for _ in range(60):
            await _step(chance, api, bus, start_bridge)
        api.list_faults.clear()
        api.watch_faults.clear()
        await settle(bus, api, 15)

        async def followed() -> bool:
            return all(history.versions.get(name) == version for name, (_, version, _) in (await living(bus)).items())

        await eventually(followed)
        assert history.wrong == []
        assert await living(bus) == expected(api)
    finally:
        follower.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await follower


async def _step(chance: random.Random, api: ScriptedApi, bus: Bus, start_bridge) -> None:
    names = [name for _, name in api.objects.get("gryviaaijobs", {})]
    match chance.choice(["put", "put", "put", "put", "delete", "renew", "fault", "drop", "forget", "settle", "rare"]):
        case "put":
            for _ in range(chance.randint(1, 8)):
                await api.put(AIJOBS, f"job-{chance.randint(0, 20)}", spec={"n": chance.random()})
        case "delete" if names:
            await api.delete(AIJOBS, chance.choice(names))
        case "renew" if names:
            name = chance.choice(names)
            await api.delete(AIJOBS, name)
            await api.put(AIJOBS, name)
        case "fault":
            chance.choice([api.list_faults, api.watch_faults]).append(chance.choice(FAULTS))
            await api.drop_watches()
        case "drop":
            await api.drop_watches()
        case "forget":
            api.forget()
        case "settle":
            await asyncio.sleep(chance.random() / 50)  # lets something of it happen; nothing is waited for
        case "rare" if chance.random() < 0.3:
            await start_bridge.stop()
            await start_bridge(watched=[Watched(AIJOBS)], speed=200.0, wait=False)
        case "rare" if chance.random() < 0.3:
            with contextlib.suppress(Gone):
                await call(bus.link, f"STREAM.DELETE.{OBJECTS}")
