"""Events: deterministic, valid CloudEvents that any reader understands, delivered once, resumable."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_binary
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gryvia_common.bus.cloudevents import event_message, received_event
from gryvia_common.bus.connection import Bus
from gryvia_common.bus.events import CATALOGUE, DomainEvent, JobFailed, TrialCompleted, TunerCompleted
from gryvia_common.bus.jetstream import call
from gryvia_common.bus.subjects import event_subject
from gryvia_common.bus.subscribe import ReceivedEvent, Since, subscribe_events
from gryvia_common.errors import Terminal

from .conftest import until_pulling

AT = datetime(2026, 3, 1, 12, 30, 15, 250000, tzinfo=UTC)


def trial(number: int, value: float | None = 0.5) -> TrialCompleted:
    name = f"search-trial-{number}"
    return TrialCompleted(
        namespace="team",
        name=name,
        uid="5b1",
        generation=1,
        transition=name,
        tuner="search",
        number=number,
        parameters={"lr": "0.1"},
        metric_name="loss",
        metric_value=value,
    )


class Reading:
    """An open subscription, one event at a time."""

    def __init__(self, bus: Bus, *filters: tuple[str, str], since: Since = "all") -> None:
        self._events = subscribe_events(bus, filters or (("*", "*"),), since=since)

    async def take(self, count: int) -> list[ReceivedEvent]:
        async with asyncio.timeout(10):
            return [await anext(self._events) for _ in range(count)]

    async def close(self) -> None:
        await self._events.aclose()


def leaves(cls: type[DomainEvent]) -> set[type[DomainEvent]]:
    below = cls.__subclasses__()
    return {cls} if not below else {leaf for one in below for leaf in leaves(one)}


def test_the_catalogue_names_every_event_class_once_and_each_is_documented() -> None:
    mine = {cls for cls in leaves(DomainEvent) if cls.__module__.startswith("gryvia_common.")}
    assert set(CATALOGUE) == mine
    assert len({(cls.noun, cls.verb) for cls in CATALOGUE}) == len(CATALOGUE)
    assert all(cls.__doc__ for cls in CATALOGUE)


def test_the_id_is_the_same_whenever_the_same_thing_is_said() -> None:
    assert trial(3).id == trial(3, value=0.25).id == "5b1/trial/completed/search-trial-3"
    assert trial(3).id != trial(4).id


def test_a_value_that_is_no_number_cannot_be_sent() -> None:
    with pytest.raises(ValidationError):
        trial(1, math.nan)


def test_a_reader_made_for_http_understands_the_headers_and_the_body() -> None:
    headers, body = event_message(trial(2), source="tuner", at=AT)
    event = from_binary(HTTPMessage(headers=headers, body=body), JSONFormat())
    assert event.get_id() == trial(2).id
    assert event.get_type() == "gryvia.trial.completed"
    assert event.get_source() == "/gryvia/tuner"
    assert event.get_subject() == "team/search-trial-2"
    assert event.get_time() == AT
    data = event.get_data()
    assert isinstance(data, dict)
    assert (data["tuner"], data["metricValue"], data["parameters"]) == ("search", 0.5, {"lr": "0.1"})


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30))
def test_any_name_passes_through_the_headers(name: str) -> None:
    event = JobFailed(namespace="ns", name=name, uid="u", generation=2, phase="Failed", transition=name)
    headers, body = event_message(event, source="jobs", at=AT)
    assert all(value.isascii() and value.isprintable() for key, value in headers.items() if key.startswith("ce-"))
    received = received_event(event_subject("job", "failed", "ns", name), headers, body, 1)
    assert (received.id, received.subject, received.name, received.time) == (event.id, f"ns/{name}", name, AT)
    assert received.parse() == event


def test_what_is_no_cloud_event_is_refused() -> None:
    with pytest.raises(Terminal, match="is not a CloudEvent"):
        received_event("gryvia.event.job.failed.ns.a", {}, b"{}", 9)


async def test_an_emitted_event_is_read_back_typed(bus: Bus) -> None:
    await bus.emit(trial(1), source="tuner", at=AT)
    reading = Reading(bus)
    (event,) = await reading.take(1)
    assert event.parse() == trial(1)
    assert (event.noun, event.verb, event.namespace, event.name) == ("trial", "completed", "team", "search-trial-1")
    await reading.close()


async def test_a_repeated_emit_is_read_once(bus: Bus) -> None:
    for _ in range(3):
        await bus.emit(trial(1), source="tuner", at=AT)
    await bus.emit(trial(2), source="tuner", at=AT)
    reading = Reading(bus)
    assert [event.name for event in await reading.take(2)] == ["search-trial-1", "search-trial-2"]
    await reading.close()


async def test_filters_choose_by_noun_and_verb(bus: Bus) -> None:
    await bus.emit(trial(1), source="tuner", at=AT)
    await bus.emit(
        TunerCompleted(namespace="team", name="search", uid="5b1", generation=1, best_value=0.5), source="tuner", at=AT
    )
    await bus.emit(JobFailed(namespace="t", name="j", uid="u", generation=1, phase="Failed"), source="jobs", at=AT)
    reading = Reading(bus, ("tuner", "*"), ("*", "failed"))
    assert [event.type for event in await reading.take(2)] == ["gryvia.tuner.completed", "gryvia.job.failed"]
    await reading.close()


async def test_since_new_passes_over_what_was(bus: Bus) -> None:
    await bus.emit(trial(1), source="tuner", at=AT)
    reading = Reading(bus, since="new")
    first = asyncio.create_task(reading.take(1))
    await until_pulling(bus, "EVENTS")
    await bus.emit(trial(2), source="tuner", at=AT)
    assert [event.name for event in await first] == ["search-trial-2"]
    await reading.close()


async def test_since_a_time_gives_what_came_after_it(bus: Bus) -> None:
    await bus.emit(trial(1), source="tuner", at=AT)
    reading = Reading(bus, since=datetime.now(UTC) - timedelta(minutes=1))
    assert len(await reading.take(1)) == 1
    await reading.close()


async def test_an_interruption_neither_loses_nor_repeats(bus: Bus) -> None:
    await bus.emit(trial(1), source="tuner", at=AT)
    reading = Reading(bus)
    await reading.take(1)
    for name in (await call(bus.link, "CONSUMER.NAMES.EVENTS", {}))["consumers"]:
        await call(bus.link, f"CONSUMER.DELETE.EVENTS.{name}")
    await bus.emit(trial(2), source="tuner", at=AT)
    await bus.emit(trial(3), source="tuner", at=AT)
    assert [event.name for event in await reading.take(2)] == ["search-trial-2", "search-trial-3"]
    await reading.close()


async def test_a_stream_made_anew_is_read_from_its_beginning(bus: Bus) -> None:
    await bus.emit(trial(1), source="tuner", at=AT)
    reading = Reading(bus, since="new")
    first = asyncio.create_task(reading.take(1))
    await until_pulling(bus, "EVENTS")
    await call(bus.link, "STREAM.DELETE.EVENTS")
    await bus.ensure_streams()
    await bus.emit(trial(2), source="tuner", at=AT)
    assert [event.name for event in await first] == ["search-trial-2"]
    await reading.close()
