"""Objects that several others share, shown with a small service: all GryviaAIJobs with one model sign one list (a ConfigMap that
belongs to nobody), know how many they are, and follow the first of the list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB, GryviaAIJobSpec, GryviaAIJobStatus
from gryvia_common.kube.children import MANAGED_BY, MANAGER
from gryvia_common.kube.objects import Json, metadata, uid_of
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.controller import Controller, Index, Lookup, Ref, Selection
from gryvia_common.runtime.plan import Apply, Patch, Plan
from gryvia_common.runtime.service import Service, run_service
from gryvia_common.runtime.settings import ProcessSettings
from gryvia_common.runtime.world import Object, World

Until = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]
Job = Object[GryviaAIJobSpec, GryviaAIJobStatus]


def signed(record: Json | None) -> list[str]:
    return list(json.loads(record["data"]["names"])) if record else []


def models(obj: Json) -> Iterable[str]:
    return [f"{metadata(obj)['namespace']}/{obj['spec'].get('model')}"]


def refs(job: Job, get: Lookup) -> Iterable[Ref | Selection]:
    yield Ref(CONFIG_MAPS, job.namespace, f"model-{job.spec.model}")
    yield Selection("by-model", f"{job.namespace}/{job.spec.model}")
    for first in signed(get(CONFIG_MAPS, job.namespace, f"model-{job.spec.model}"))[:1]:
        yield Ref(AI_JOB.resource, job.namespace, first)


def decide(job: Job, world: World, now: datetime) -> Plan:
    name = f"model-{job.spec.model}"
    record = world.get(CONFIG_MAPS, job.namespace, name)
    if record is None:
        meta = {"name": name, "namespace": job.namespace, "labels": {MANAGED_BY: MANAGER}}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"names": "[]"}}
        return Plan(apply=(Apply(CONFIG_MAPS, manifest, owned=False),))
    names = signed(record)
    patch: tuple[Patch, ...] = ()
    if job.name not in names:
        body = {"data": {"names": json.dumps([*names, job.name])}}
        version = metadata(record)["resourceVersion"]
        patch = (Patch(CONFIG_MAPS, job.namespace, name, body, uid_of(record), version),)
    leader = world.get(AI_JOB.resource, job.namespace, names[0]) if names else None
    image = leader["spec"]["image"] if leader else "nobody's"
    count = len(world.select("by-model", f"{job.namespace}/{job.spec.model}"))
    refusal = world.refusal(CONFIG_MAPS, name)
    message = (
        refusal.message
        if refusal
        else f"{count} share the model, {len(names)} have signed, the first one's image is {image}"
    )
    return Plan(status=GryviaAIJobStatus(phase="Running", message=message), patch=patch)


def invalid(raw: Json, message: str, now: datetime) -> Plan:
    return Plan()


CONTROLLER = Controller(
    kind=AI_JOB,
    decide=decide,
    invalid=invalid,
    ref_resources=(AI_JOB.resource, CONFIG_MAPS),
    refs=refs,
    indexes=(Index("by-model", AI_JOB.resource, models),),
)


RECORD_ONLY = replace(CONTROLLER, refs=lambda job, get: [Ref(CONFIG_MAPS, job.namespace, f"model-{job.spec.model}")])


@asynccontextmanager
async def replicas(surroundings: Any, *names: str, controller: Controller[Any, Any] = CONTROLLER) -> Any:
    async with AsyncExitStack() as stack:
        for name in names:
            settings = ProcessSettings(
                kube=surroundings.kube_settings, nats=surroundings.nats, replica=name, lease_seconds=3
            )
            task = asyncio.create_task(run_service(Service("cards", [controller]), settings, SystemClock()))
            stack.push_async_callback(asyncio.gather, task, return_exceptions=True)
            stack.callback(task.cancel)
        yield


def job(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "gryvia.io/v1alpha1",
        "kind": "GryviaAIJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "training", "gpus": 0, "image": f"{name}:1", **spec},
    }


async def messages(surroundings: Any) -> dict[str, str]:
    found = await surroundings.kube.list(AI_JOB.resource, "default")
    return {metadata(obj)["name"]: (obj.get("status") or {}).get("message", "") for obj in found}


async def test_no_write_to_a_shared_object_is_lost_and_everybody_sees_the_last_one(
    surroundings: Any, until: Until
) -> None:
    names = [f"job-{number}" for number in range(20)]
    async with replicas(surroundings, "a", "b"):
        for name in names:
            await surroundings.kube.create(AI_JOB.resource, job(name, model="m"))

        async def told(count: int) -> bool:
            record = signed(await surroundings.kube.get(CONFIG_MAPS, "default", "model-m"))
            wanted = f"{count} share the model, 20 have signed, the first one's image is {record[0]}:1"
            return set((await messages(surroundings)).values()) == {wanted}

        async def written() -> bool:
            return len(await messages(surroundings)) == 20 and "" not in (await messages(surroundings)).values()

        await until(written)
        await until(lambda: told(20))
        record = await surroundings.kube.get(CONFIG_MAPS, "default", "model-m")
        assert sorted(signed(record)) == sorted(names)
        assert "ownerReferences" not in metadata(record)
        last = signed(record)[-1]
        await surroundings.kube.delete(AI_JOB.resource, "default", last)
        await until(lambda: told(19))
        kept = await surroundings.kube.get(CONFIG_MAPS, "default", "model-m")
        assert last in signed(kept), "it outlives who signed"


async def test_what_a_pass_writes_is_news_to_everybody_else_who_looks_at_it(surroundings: Any, until: Until) -> None:
    """The replica knows the new state before the bus brings it, which then is no news any more."""
    async with replicas(surroundings, "a", controller=RECORD_ONLY):
        for name in ("first", "second", "third"):
            await surroundings.kube.create(AI_JOB.resource, job(name, model="m"))

            async def has_signed(name: str = name) -> bool:
                lists = await surroundings.kube.list(CONFIG_MAPS, "default")
                return any(name in signed(one) for one in lists if metadata(one)["name"] == "model-m")

            await until(has_signed)

        async def all_know() -> bool:
            return all("3 have signed" in said for said in (await messages(surroundings)).values())

        await until(all_know)


async def test_who_follows_an_object_through_another_is_woken_by_a_change_of_it(
    surroundings: Any, until: Until
) -> None:
    async with replicas(surroundings, "a"):
        await surroundings.kube.create(AI_JOB.resource, job("first", model="m"))

        async def says(name: str, image: str) -> bool:
            return (await messages(surroundings)).get(name, "").endswith(f"image is {image}")

        await until(lambda: says("first", "first:1"))
        await surroundings.kube.create(AI_JOB.resource, job("second", model="m"))
        await until(lambda: says("second", "first:1"))
        await surroundings.kube.patch(AI_JOB.resource, "default", "first", {"spec": {"image": "first:2"}})
        await until(lambda: says("second", "first:2"))


async def test_a_patch_that_the_api_server_refuses_is_told_and_not_sent_again_and_again(
    surroundings: Any, until: Until
) -> None:
    async with replicas(surroundings, "a"):
        meta = {"name": "model-m", "namespace": "default", "labels": {MANAGED_BY: MANAGER}}
        frozen = {"metadata": meta, "apiVersion": "v1", "kind": "ConfigMap", "data": {"names": "[]"}, "immutable": True}
        await surroundings.kube.create(CONFIG_MAPS, frozen)
        await surroundings.kube.create(AI_JOB.resource, job("one", model="m"))

        async def told() -> bool:
            return "immutable" in (await messages(surroundings)).get("one", "")

        await until(told)
        assert signed(await surroundings.kube.get(CONFIG_MAPS, "default", "model-m")) == []
