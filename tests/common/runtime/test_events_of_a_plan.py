"""The events of one plan go out together, in their order, and before anything is written."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

import pytest

from gryvia_common.bus.connection import Bus
from gryvia_common.bus.events import DomainEvent, JobStarted
from gryvia_common.clock import SystemClock
from gryvia_common.errors import KnownOutage
from gryvia_common.kinds.aijob import AI_JOB, GryviaAIJobStatus
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, Key
from gryvia_common.runtime.cache import ObjectCache
from gryvia_common.runtime.executor import Executor, Memory
from gryvia_common.runtime.plan import Plan
from gryvia_common.runtime.recorder import Recorder
from gryvia_common.runtime.world import FixedWorld

RAW: Json = {"metadata": {"name": "j", "namespace": "t", "uid": "u", "resourceVersion": "1"}}


@dataclass
class SlowBus:
    """Answers a second after a message; of `lost` nobody knows whether it is stored. `sent` and `stored`: names, in order."""

    lost: str = ""
    sent: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)

    async def emit(self, event: DomainEvent, *, source: str, at: datetime) -> None:
        self.sent.append(event.transition)
        await asyncio.sleep(1.0)
        if event.transition == self.lost:
            raise KnownOutage("gone")
        self.stored.append(event.transition)


@dataclass
class OnlyPatches:
    """The API server, for the status of one object. `events_before`: what was stored when the status came."""

    bus: SlowBus
    events_before: list[list[str]] = field(default_factory=list)

    async def patch(self, resource: object, namespace: str, name: str, body: Json, **how: str) -> Json:
        self.events_before.append(list(self.bus.stored))
        return {"metadata": {**RAW["metadata"], "resourceVersion": "2"}, "status": body["status"]}


def started(transition: str) -> JobStarted:
    return JobStarted(namespace="t", name="j", uid="u", generation=1, transition=transition, phase="Running")


async def carry_out(bus: SlowBus, kube: OnlyPatches) -> float:
    """Seconds it takes."""
    kube_, bus_, clock = cast(Kube, kube), cast(Bus, bus), SystemClock()
    recorder = Recorder(kube_, "gryvia-test", clock)
    executor = Executor(kube_, bus_, ObjectCache(), recorder, clock, manager="gryvia-test", spread=lambda *_: None)
    plan = Plan(status=GryviaAIJobStatus(phase="Running"), emit=tuple(map(started, "abc")))
    memory: Any = Memory((AI_JOB.plural, Key("t", "j")))
    began = asyncio.get_running_loop().time()
    await executor.carry_out(AI_JOB.resource, RAW, FixedWorld(), plan, memory, frozenset())
    return asyncio.get_running_loop().time() - began


async def test_three_events_wait_for_one_answer_of_the_bus_and_the_status_comes_after_all() -> None:
    bus = SlowBus()
    kube = OnlyPatches(bus)
    assert await carry_out(bus, kube) == pytest.approx(1.0)
    assert bus.sent == ["a", "b", "c"]
    assert kube.events_before == [["a", "b", "c"]]


async def test_the_status_is_not_written_when_one_event_may_be_lost() -> None:
    bus = SlowBus(lost="b")
    kube = OnlyPatches(bus)
    with pytest.raises(KnownOutage):
        await carry_out(bus, kube)
    assert bus.stored == ["a", "c"]
    assert kube.events_before == []
