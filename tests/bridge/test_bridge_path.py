"""The one path: start, changes, deletions, restart, 410, and what the stream then holds."""

from __future__ import annotations

import orjson
import pytest
from scripted_api import AIJOBS, answers, eventually, expected, held, line, published, sends, settle, status

from gryvia_bridge.watched import Watched
from gryvia_common.bus.pull import read_to_end
from gryvia_common.bus.streams import OBJECTS
from gryvia_common.bus.subjects import object_subject, objects_filter, partition_of
from gryvia_common.kube.resources import PODS


async def test_what_is_there_at_the_start_and_every_change_gets_into_the_stream(api, bus, start_bridge):
    await api.put(AIJOBS, "a", spec={"x": 1})
    await start_bridge()
    await api.put(AIJOBS, "b")
    await api.put(AIJOBS, "a", spec={"x": 2})
    await settle(bus, api)
    await api.delete(AIJOBS, "b")
    await settle(bus, api)
    _, version, op = (await held(bus))["b"]
    assert (version, op) == (api.version, "deleted")


async def test_the_body_is_the_object_without_managed_fields_and_last_applied(api, bus, start_bridge):
    note = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"}
    await api.put(AIJOBS, "a", spec={"x": 1}, metadata={"annotations": note})
    await start_bridge()
    [message] = [m async for m in read_to_end(bus.link, OBJECTS, [objects_filter("gryviaaijobs")])]
    body = orjson.loads(message.body)
    assert body["spec"] == {"x": 1}
    assert body["metadata"]["annotations"] == {"kept": "yes"}
    assert "managedFields" not in body["metadata"]
    assert body["kind"] == "GryviaAIJob"
    assert message.headers["ce-type"] == "gryvia.object.applied"
    assert message.subject == object_subject("gryviaaijobs", partition_of("ns", "a"), "ns", "a")


async def test_a_child_travels_in_its_owners_partition(api, bus, start_bridge):
    await api.put(PODS, "worker-0", metadata={"annotations": {"gryvia.io/owner": "gryviaaijobs/ns/train/uid-9"}})
    await start_bridge()
    [stored] = [s async for s in bus.stored_headers(objects_filter("pods"))]
    assert stored.subject == object_subject("pods", partition_of("ns", "train"), "ns", "worker-0")


async def test_a_restart_with_nothing_changed_publishes_nothing(api, bus, start_bridge):
    for number in range(30):
        await api.put(AIJOBS, f"job-{number}")
    await start_bridge()
    await settle(bus, api)
    await start_bridge.stop()
    again = await start_bridge()
    assert published(again) == 0


async def test_what_happened_while_no_bridge_ran_is_the_difference(api, bus, start_bridge):
    for name in ("kept", "changed", "removed", "renewed"):
        await api.put(AIJOBS, name)
    await start_bridge()
    await settle(bus, api)
    await start_bridge.stop()
    await api.put(AIJOBS, "changed", spec={"x": 1})
    await api.delete(AIJOBS, "removed")
    await api.delete(AIJOBS, "renewed")
    await api.put(AIJOBS, "renewed")
    await api.put(AIJOBS, "new")
    again = await start_bridge()
    await settle(bus, api)
    assert published(again) == 4
    assert (await held(bus))["removed"][2] == "deleted"


@pytest.mark.parametrize("how", ["code", "event"])
async def test_410_leads_to_one_relist_with_tombstones_and_a_watch_from_its_version(how, api, bus, start_bridge):
    """tomplus/kubernetes_asyncio#327: A deleted, B changed, C created while cut off, then 410."""
    await api.put(AIJOBS, "a")
    await api.put(AIJOBS, "b")
    await start_bridge(watched=[Watched(AIJOBS)])
    await settle(bus, api)
    lists, watches = api.count("list"), api.count("watch")
    expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    fault = answers(lambda: status(410, "Expired", "too old")) if how == "code" else sends(line("ERROR", expired))
    api.watch_faults.append(fault)
    await api.drop_watches()
    uid_a = expected(api)["a"][0]
    await api.delete(AIJOBS, "a")
    await api.put(AIJOBS, "b", spec={"x": 2})
    await api.put(AIJOBS, "c")
    api.forget()
    await settle(bus, api)

    async def tombstone() -> bool:
        return (await held(bus)).get("a", ("", 0, ""))[::2] == (uid_a, "deleted")

    await eventually(tombstone)
    await api.put(AIJOBS, "d")
    await settle(bus, api)
    assert api.count("list") == lists + 1
    assert api.count("watch") == watches + 2  # the one that was refused, and the one from the list's version
    assert (
        int([q for v, p, q in api.seen if v == "watch" and p == "gryviaaijobs"][-1]["resourceVersion"])
        >= api.horizon["gryviaaijobs"]
    )


async def test_the_marker_comes_after_everything_and_once_a_type(api, bus, start_bridge):
    for number in range(300):
        await api.put(AIJOBS, f"job-{number}")
    await start_bridge()
    markers = [stored async for stored in bus.stored_headers("gryvia.sync.>")]
    objects = [stored async for stored in bus.stored_headers(objects_filter("gryviaaijobs"))]
    assert {marker.subject for marker in markers} == {"gryvia.sync.gryviaaijobs", "gryvia.sync.pods"}
    jobs = next(marker for marker in markers if marker.subject.endswith("aijobs"))
    assert jobs.sequence > max(stored.sequence for stored in objects)
    assert api.count("list") == 2, "types that are listed at the same version get their markers at once"
