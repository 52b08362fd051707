"""What a user sees of any service, shown with a small one: every GryviaAIJob gets a ConfigMap with its model's name."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from gryvia_common.bus.connection import Bus
from gryvia_common.bus.jetstream import call
from gryvia_common.clock import SystemClock
from gryvia_common.errors import Conflict, Gone
from gryvia_common.kinds.aijob import AI_JOB, GryviaAIJobSpec, GryviaAIJobStatus
from gryvia_common.kube.children import owned_metadata
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS, JOBS
from gryvia_common.runtime.controller import ActionContext, Controller
from gryvia_common.runtime.plan import Action, Apply, Delete, Plan
from gryvia_common.runtime.service import Service, run_service
from gryvia_common.runtime.settings import ProcessSettings
from gryvia_common.runtime.world import Object, World

Until = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]
Job = Object[GryviaAIJobSpec, GryviaAIJobStatus]


def decide(job: Job, world: World, now: datetime) -> Plan:
    name = f"{job.name}-card"
    if job.spec.model == "none":
        cards = world.children(CONFIG_MAPS)
        return Plan(
            delete=tuple(Delete(CONFIG_MAPS, job.namespace, c["metadata"]["name"], c["metadata"]["uid"]) for c in cards)
        )
    refusal = world.refusal(CONFIG_MAPS, name)
    if refusal:
        return Plan(status=GryviaAIJobStatus(phase="Failed", message=f"{refusal.reason}: {refusal.message}"))
    if job.spec.model == "later" and now < job.created_at + timedelta(seconds=1.5):
        return Plan(again_at=job.created_at + timedelta(seconds=1.5))
    answer = world.observation("ask")
    message = str(answer.value) if answer else "asking"
    actions = (Action("ask", "ask", {"name": job.name}),) if job.spec.model == "ask" else ()
    manifest: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned_metadata(job.raw, AI_JOB.resource, name, {"card": "yes"}),
        "data": {"model": job.spec.model or "?"},
    }
    status = GryviaAIJobStatus(phase="Running", message=message, observed_generation=job.generation)
    return Plan(status=status, apply=(Apply(CONFIG_MAPS, manifest),), actions=actions)


def invalid(raw: Json, message: str, now: datetime) -> Plan:
    return Plan(status=GryviaAIJobStatus(phase="Failed", message=message))


async def ask(context: ActionContext, arguments: Mapping[str, object]) -> object:
    return f"hello {arguments['name']}"


CONTROLLER = Controller(kind=AI_JOB, decide=decide, invalid=invalid, children=(CONFIG_MAPS, JOBS), actions={"ask": ask})


@asynccontextmanager
async def running(surroundings: Any, *, replica: str = "a") -> AsyncIterator[asyncio.Task[None]]:
    settings = ProcessSettings(
        kube=surroundings.kube_settings, nats=surroundings.nats, replica=replica, lease_seconds=3
    )
    task = asyncio.create_task(run_service(Service("cards", [CONTROLLER]), settings, SystemClock()))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def job(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "gryvia.io/v1alpha1",
        "kind": "GryviaAIJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "training", "gpus": 0, "image": "python:3", **spec},
    }


@pytest.fixture
async def card(surroundings: Any) -> Callable[[str], Awaitable[Json | None]]:
    async def read(name: str) -> Json | None:
        try:
            return await surroundings.kube.get(CONFIG_MAPS, "default", f"{name}-card")
        except Gone:
            return None

    return read


@pytest.fixture
def message(surroundings: Any) -> Callable[[str], Awaitable[str]]:
    async def read(name: str) -> str:
        found = await surroundings.kube.get(AI_JOB.resource, "default", name)
        return (found.get("status") or {}).get("message", "")

    return read


def writes(surroundings: Any) -> int:
    """The cluster's own count of changes."""
    return int(surroundings.cluster.api.list(surroundings.cluster.api.resource("", "configmaps"))[1])


async def settle(surroundings: Any) -> int:
    """The version at which nothing has changed for a while."""
    version = -1
    while (now := writes(surroundings)) != version:
        version = now
        await asyncio.sleep(0.5)
    return version


async def test_a_new_object_gets_its_child_and_its_status(
    surroundings: Any, until: Until, card: Any, message: Any
) -> None:
    async with running(surroundings):
        await surroundings.kube.create(AI_JOB.resource, job("one", model="m1"))

        async def done() -> bool:
            return await card("one") is not None and await message("one") == "asking"

        await until(done)
        child = await card("one")
        assert child["data"] == {"model": "m1"}
        assert child["metadata"]["ownerReferences"][0]["name"] == "one"


async def test_a_settled_object_costs_nothing(surroundings: Any, until: Until, card: Any) -> None:
    async with running(surroundings):
        for number in range(5):
            await surroundings.kube.create(AI_JOB.resource, job(f"j{number}", model="m"))

        async def done() -> bool:
            return all([await card(f"j{number}") for number in range(5)])

        await until(done)
        before = await settle(surroundings)
        await asyncio.sleep(2)
        assert writes(surroundings) == before
    async with running(surroundings, replica="b"):
        await asyncio.sleep(2)
        assert writes(surroundings) == before


async def test_a_users_change_to_a_child_is_put_back_once(surroundings: Any, until: Until, card: Any) -> None:
    async with running(surroundings):
        await surroundings.kube.create(AI_JOB.resource, job("one", model="m1"))

        async def made() -> bool:
            return await card("one") is not None

        await until(made)
        before = await settle(surroundings)
        await surroundings.kube.patch(CONFIG_MAPS, "default", "one-card", {"data": {"model": "mine", "note": "kept"}})

        async def restored() -> bool:
            return (await card("one"))["data"] == {"model": "m1", "note": "kept"}

        await until(restored)
        assert await settle(surroundings) == before + 2


async def test_somebody_elses_object_of_the_same_name_is_not_touched(
    surroundings: Any, until: Until, card: Any, message: Any
) -> None:
    stranger = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one-card", "namespace": "default"},
        "data": {"a": "b"},
    }
    await surroundings.kube.create(CONFIG_MAPS, stranger)
    async with running(surroundings):
        await surroundings.kube.create(AI_JOB.resource, job("one", model="m1"))

        async def said() -> bool:
            return (await message("one")).startswith("NameCollision: ConfigMap one-card exists already")

        await until(said)
        found = await card("one")
        assert found["data"] == {"a": "b"}
        assert "ownerReferences" not in found["metadata"]


async def test_a_child_that_is_to_go_goes(surroundings: Any, until: Until, card: Any) -> None:
    async with running(surroundings):
        await surroundings.kube.create(AI_JOB.resource, job("one", model="m1"))

        async def made() -> bool:
            return await card("one") is not None

        await until(made)
        await surroundings.kube.patch(AI_JOB.resource, "default", "one", {"spec": {"model": "none"}})

        async def gone() -> bool:
            return await card("one") is None

        await until(gone)


async def test_an_object_is_looked_at_again_when_its_time_has_come(surroundings: Any, until: Until, card: Any) -> None:
    async with running(surroundings):
        await surroundings.kube.create(AI_JOB.resource, job("one", model="later"))

        async def made() -> bool:
            return await card("one") is not None

        await until(made)


async def test_the_answer_of_an_action_reaches_the_status(surroundings: Any, until: Until, message: Any) -> None:
    async with running(surroundings):
        await surroundings.kube.create(AI_JOB.resource, job("one", model="ask"))

        async def answered() -> bool:
            return await message("one") == "hello one"

        await until(answered)


async def test_nothing_is_lost_and_nothing_made_twice_when_the_bus_is_wiped(
    surroundings: Any, until: Until, card: Any, bus: Bus
) -> None:
    async with running(surroundings):
        await surroundings.kube.create(AI_JOB.resource, job("before", model="m"))

        async def made() -> bool:
            return await card("before") is not None

        await until(made)
        uid = (await card("before"))["metadata"]["uid"]
        for stream in ("OBJECTS", "EVENTS"):
            await call(bus.link, f"STREAM.DELETE.{stream}")
        await surroundings.kube.create(AI_JOB.resource, job("after", model="m"))

        async def both() -> bool:
            return await card("after") is not None

        await asyncio.wait_for(until(both), 30)
        assert (await card("before"))["metadata"]["uid"] == uid


async def test_two_replicas_share_the_work_and_a_third_of_nothing_is_done_twice(
    surroundings: Any, until: Until, card: Any
) -> None:
    names = [f"j{number}" for number in range(40)]
    async with running(surroundings, replica="a"), running(surroundings, replica="b"):
        for name in names:
            await surroundings.kube.create(AI_JOB.resource, job(name, model="m"))

        async def done() -> bool:
            return all([await card(name) for name in names])

        await until(done)
        await settle(surroundings)
    cards = await surroundings.kube.list(CONFIG_MAPS, "default", labels="card=yes")
    assert Counter(c["metadata"]["name"] for c in cards) == Counter(f"{name}-card" for name in names)


async def test_a_status_somebody_else_wrote_meanwhile_is_not_overwritten_blindly(
    surroundings: Any, until: Until, message: Any
) -> None:
    created = await surroundings.kube.create(AI_JOB.resource, job("one", model="ask"))
    stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "status": {"phase": "Pending"}}
    async with running(surroundings):

        async def answered() -> bool:
            return await message("one") == "hello one"

        await until(answered)
        with pytest.raises(Conflict):
            await surroundings.kube.patch(AI_JOB.resource, "default", "one", stale, subresource="status")
