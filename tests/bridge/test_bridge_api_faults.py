"""What an API server, or something in front of it, may do wrong: nothing is lost, nothing is invented, the bridge goes on."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from scripted_api import (
    AIJOBS,
    answers,
    begin_stream,
    eventually,
    expected,
    held,
    line,
    published,
    reset,
    sends,
    settle,
    status,
)

from gryvia_bridge import reflector
from gryvia_bridge.watched import Watched
from gryvia_common.bus.objects import BODY_HEADER
from gryvia_common.bus.pull import read_to_end
from gryvia_common.bus.streams import OBJECTS
from gryvia_common.bus.subjects import objects_filter
from gryvia_common.kube.resources import SECRETS

ONE = [Watched(AIJOBS)]
HTML = "<html><h1>502 Bad Gateway</h1></html>"


def html(code: int):
    return answers(lambda: web.Response(status=code, text=HTML, content_type="text/html"))


def listing(**fields):
    body = {"kind": "GryviaAIJobList", "metadata": {"resourceVersion": "99999"}, "items": [], **fields}
    return answers(lambda: web.json_response(body))


BAD_LISTS = {
    "502 html": html(502),
    "200 html": html(200),
    "200 html that says json": answers(lambda: web.Response(text=HTML, content_type="application/json")),
    "504 status": answers(lambda: status(504, "Timeout", "etcd is slow")),
    "403": answers(lambda: status(403, "Forbidden", "gryviaaijobs is forbidden")),
    "wrong kind": listing(kind="Status"),
    "null of the wrong kind": listing(kind="List", items=None),
    "no version": listing(metadata={}),
    "half a body": sends(b'{"kind":"GryviaAIJobList","metadata":{"resourceVersion":"99999"},"items":[', then="close"),
    "broken connection": sends(b'{"kind":"GryviaAIJobList"', then="reset"),
    "reset": reset,
    "redirect": answers(lambda: web.Response(status=302, headers={"Location": "/login"})),
}


@pytest.mark.parametrize("bad", BAD_LISTS)
async def test_a_bad_answer_to_a_relist_is_never_an_empty_list(bad, api, bus, start_bridge):
    """jupyterhub/kubespawner#868: no tombstones, the stream untouched, and the next good list counts."""
    await api.put(AIJOBS, "a")
    bridge = await start_bridge(watched=ONE)
    lists = api.count("list")
    api.list_faults.extend([BAD_LISTS[bad]] * 2)
    await api.drop_watches()
    api.forget()
    await api.put(AIJOBS, "b")
    api.forget()
    await settle(bus, api)
    assert published(bridge) == 2
    assert api.count("list") == lists + 3


async def test_null_items_of_the_right_kind_are_an_empty_list(api, bus, start_bridge):
    await api.put(AIJOBS, "a")
    await start_bridge(watched=ONE)
    api.list_faults.append(listing(items=None))
    await api.drop_watches()
    api.version += 1
    api.forget()

    async def gone() -> bool:
        return (await held(bus))["a"][2] == "deleted"

    await eventually(gone)


async def test_a_half_line_is_discarded_at_every_byte_and_each_object_published_once(api, bus, start_bridge):
    """tomplus/kubernetes_asyncio#352: the connection breaks after n bytes of an event, for every n."""
    await api.put(AIJOBS, "known")
    bridge = await start_bridge(watched=ONE, speed=1000.0)
    event = line("MODIFIED", await api.put(AIJOBS, "known", spec={"x": 1}))
    await settle(bus, api)
    cuts = len(event) - 1
    lie = event.replace(b'"known"', b'"lies!"')  # would be published if any part of it counted
    api.watch_faults.extend(sends(lie[:cut], then=("close", "reset")[cut % 2]) for cut in range(cuts))
    await api.drop_watches()

    async def used_up() -> bool:
        return not api.watch_faults

    await eventually(used_up, 30)
    await api.put(AIJOBS, "last")
    await settle(bus, api)
    assert set(await held(bus)) == {"known", "last"}
    assert published(bridge) == 3


@pytest.mark.parametrize(
    "fault",
    [
        html(502),
        html(200),
        answers(lambda: status(500, "InternalError", "boom")),
        sends(b"", then="close"),
        sends(b"", then="reset"),
        sends(b"not json\n"),
        sends(b'"a string"\n'),
        sends(b'{"type":"ADDED","object":{"metadata":{"name":"ghost"}}}\n'),
        sends(b'{"type":"STRANGE","object":{"metadata":{"name":"ghost","uid":"u","resourceVersion":"100000"}}}\n'),
        sends(line("ERROR", {"kind": "Status", "code": 500, "message": "etcd went away"})),
    ],
)
async def test_a_bad_watch_is_taken_up_again_from_the_last_version(fault, api, bus, start_bridge):
    bridge = await start_bridge(watched=ONE)
    await api.put(AIJOBS, "a")
    await settle(bus, api)
    lists = api.count("list")
    api.watch_faults.extend([fault] * 2)
    await api.drop_watches()
    await api.put(AIJOBS, "b")
    await settle(bus, api)
    assert published(bridge) == 2
    assert api.count("list") == lists
    assert set(await held(bus)) == {"a", "b"}
    taken_up_from = int([query for verb, _, query in api.seen if verb == "watch"][-1]["resourceVersion"])
    assert taken_up_from >= expected(api)["a"][1]


async def test_a_server_that_closes_at_once_is_not_asked_in_a_loop(api, bus, start_bridge):
    bridge = await start_bridge(watched=ONE, speed=20.0)
    api.watch_faults.extend([sends(b"")] * 1000)
    began, watches = bridge.clock.monotonic(), api.count("watch")
    await api.drop_watches()

    async def for_a_while() -> bool:
        return bridge.clock.monotonic() - began > 30

    await eventually(for_a_while)
    assert 3 < api.count("watch") - watches < 30


async def test_a_half_open_watch_is_noticed(api, bus, start_bridge, monkeypatch):
    """The server takes the request, begins the answer, and says nothing ever again."""
    assert reflector.IDLE <= 60
    monkeypatch.setattr(reflector, "IDLE", 0.2)
    await start_bridge(watched=ONE)
    api.watch_faults.append(sends(b"", then="hang"))
    await api.drop_watches()
    await api.put(AIJOBS, "a")
    await settle(bus, api)


async def test_a_quiet_watch_is_taken_up_again_without_a_list_or_a_pause(api, bus, start_bridge, monkeypatch):
    monkeypatch.setattr(reflector, "IDLE", 0.05)
    bridge = await start_bridge(watched=ONE)

    async def taken_up() -> bool:
        return api.count("watch") > 10

    await eventually(taken_up)
    assert api.count("list") == 1
    assert bridge.state.types["gryviaaijobs"].error == ""


async def test_an_event_above_four_mebibytes_passes_and_its_message_is_a_reference(api, bus, start_bridge):
    await start_bridge(watched=ONE)
    await api.put(AIJOBS, "large", spec={"x": "y" * (5 * 2**20)})
    await api.put(AIJOBS, "small")
    await settle(bus, api)
    messages = {
        m.subject.rpartition(".")[2]: m async for m in read_to_end(bus.link, OBJECTS, [objects_filter(AIJOBS.plural)])
    }
    assert messages["large"].body == b""
    assert messages["large"].headers[BODY_HEADER] == "omitted"
    assert messages["small"].body
    assert BODY_HEADER not in messages["small"].headers


async def test_retry_after_is_honoured(api, bus, start_bridge):
    api.list_faults.append(answers(lambda: status(429, "TooManyRequests", "slow down", **{"Retry-After": "20"})))
    bridge = await start_bridge(watched=ONE, wait=False, speed=20.0)
    began = bridge.clock.monotonic()
    await api.put(AIJOBS, "a")
    await settle(bus, api)
    assert bridge.clock.monotonic() - began >= 20


async def test_a_list_from_the_past_is_not_believed(api, bus, start_bridge):
    """kubernetes/kubernetes#59848: a lagging server lists a dead object at an older version."""
    past = await api.put(AIJOBS, "dead")
    await api.put(AIJOBS, "alive")
    await start_bridge(watched=ONE)
    await api.delete(AIJOBS, "dead")
    await settle(bus, api)
    old = {
        "kind": "GryviaAIJobList",
        "metadata": {"resourceVersion": past["metadata"]["resourceVersion"]},
        "items": [past],
    }
    api.list_faults.extend([answers(lambda: web.json_response(old))] * 3)
    await api.drop_watches()
    await api.put(AIJOBS, "new")
    api.forget()
    await settle(bus, api)
    assert not api.list_faults
    assert (await held(bus))["dead"][2] == "deleted"
    assert all(query.get("resourceVersion") != "0" for verb, _, query in api.seen if verb == "list")
    begun = [int(query["resourceVersion"]) for verb, _, query in api.seen if verb == "watch"]
    assert begun == sorted(begun), "a watch was begun from the past"


async def test_a_list_that_expires_between_its_pages_is_begun_anew(api, bus, start_bridge):
    for number in range(25):
        await api.put(AIJOBS, f"job-{number}")
    bridge = await start_bridge(watched=ONE)
    api.page = 10
    expired = answers(lambda: status(410, "Expired", "The provided continue parameter is too old"))

    async def first_page(request: web.Request) -> web.StreamResponse:
        api.list_faults.append(expired)
        return await api.list(request, "gryviaaijobs")

    api.list_faults.append(first_page)
    await api.drop_watches()
    await api.put(AIJOBS, "another")
    api.forget()
    await settle(bus, api)
    assert published(bridge) == 26


async def test_no_tombstone_before_the_last_page(api, bus, start_bridge):
    """stackabletech/hdfs-operator#774: between the pages of a relist nothing looks deleted."""
    for number in range(25):
        await api.put(AIJOBS, f"job-{number:02}")
    await start_bridge(watched=ONE)
    api.page = 10
    stuck, go = asyncio.Event(), asyncio.Event()

    async def first(request: web.Request) -> web.StreamResponse:
        api.list_faults.append(second)
        return await api.list(request, "gryviaaijobs")

    async def second(request: web.Request) -> web.StreamResponse:
        stuck.set()
        await go.wait()
        return await api.list(request, "gryviaaijobs")

    api.list_faults.append(first)
    await api.drop_watches()
    await api.delete(AIJOBS, "job-24")
    api.forget()
    await stuck.wait()
    assert all(op == "applied" for _, _, op in (await held(bus)).values())
    go.set()
    await settle(bus, api)
    assert (await held(bus))["job-24"][2] == "deleted"


async def test_a_type_that_is_not_served_yet_is_waited_for_and_holds_up_no_other(api, bus, start_bridge):
    api.served = {"pods"}
    bridge = await start_bridge(wait=False)

    async def pods_are_complete() -> bool:
        types = bridge.state.types
        return bool(types) and types["pods"].synced and "does not serve" in types["gryviaaijobs"].error

    await eventually(pods_are_complete)
    assert "gryviaaijobs is not complete yet" in bridge.state.wrong(bridge.clock.monotonic())
    api.served = None
    await api.put(AIJOBS, "a")
    await settle(bus, api)
    assert bridge.state.wrong(bridge.clock.monotonic()) == ""


async def test_of_secrets_only_the_metadata_is_asked_for(api, bus, start_bridge):
    async def metadata_list(request: web.Request) -> web.StreamResponse:
        assert "PartialObjectMetadataList" in request.headers["Accept"]
        body = {"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "100"}, "items": []}
        return web.json_response(body)

    api.list_faults.append(metadata_list)
    await start_bridge(watched=[Watched(SECRETS, "app.kubernetes.io/managed-by=gryvia", metadata_only=True)])
    assert "as=PartialObjectMetadata;" in api.accepted[-1]


async def test_bookmarks_move_the_version_a_watch_is_taken_up_from(api, bus, start_bridge):
    async def bookmark(request: web.Request) -> web.StreamResponse:
        api.version = 5000
        mark = {"kind": "GryviaAIJob", "metadata": {"resourceVersion": "5000"}}
        return await sends(line("BOOKMARK", mark))(request)

    api.watch_faults.append(bookmark)
    await start_bridge(watched=ONE)

    async def taken_up() -> bool:
        return any(query.get("resourceVersion") == "5000" for verb, _, query in api.seen if verb == "watch")

    await eventually(taken_up)


async def test_a_bookmark_counts_as_seen_when_a_list_comes_from_the_past(api, bus, start_bridge):
    """Without it this list would make a tombstone of an object that was there all the time."""
    await api.put(AIJOBS, "a")

    async def bookmark(request: web.Request) -> web.StreamResponse:
        api.version = 5000
        api.list_faults.extend([listing(metadata={"resourceVersion": "400"})] * 2)
        api.forget()
        mark = {"kind": "GryviaAIJob", "metadata": {"resourceVersion": "4999"}}
        return await sends(line("BOOKMARK", mark))(request)

    api.watch_faults.append(bookmark)
    bridge = await start_bridge(watched=ONE)

    async def listed_again() -> bool:
        return api.count("list") >= 4 and bridge.state.types["gryviaaijobs"].live

    await eventually(listed_again)
    assert await held(bus) == expected(api)


async def test_lines_split_over_chunks_are_put_together(api, bus, start_bridge):
    data = line("ADDED", await api.put(AIJOBS, "a")) + line("ADDED", await api.put(AIJOBS, "b"))
    wanted = expected(api)
    api.objects["gryviaaijobs"].clear()

    async def dribble(request: web.Request) -> web.StreamResponse:
        response = await begin_stream(request)
        for start in range(0, len(data), 7):
            await response.write(data[start : start + 7])
        await asyncio.Event().wait()
        return response

    api.watch_faults.append(dribble)
    await start_bridge(watched=ONE)

    async def both_are_there() -> bool:
        return await held(bus) == wanted

    await eventually(both_are_there)
