"""Resource versions, history and watch cursors of the store."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store import Key, Store

POD = "pods"


def obj(name: str, value: int = 0, namespace: str = "a") -> dict:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "value": value}


def put(store: Store, name: str, value: int = 0, namespace: str = "a", resource: str = POD) -> int:
    return store.put(resource, Key(namespace, name), obj(name, value, namespace)).rv


def drop(store: Store, name: str, namespace: str = "a") -> int:
    key = Key(namespace, name)
    entry = store.get(POD, key)
    assert entry is not None
    return store.remove(POD, key, entry.obj).rv


def view(store: Store, rv: int) -> dict[str, int]:
    return {entry.key.name: entry.obj["value"] for entry in store.entries_at(POD, None, rv)}


operations = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["put", "drop"])), max_size=40)


@given(operations)
def test_every_past_version_can_be_listed_as_it_was(steps: list[tuple[str, str]]) -> None:
    store = Store()
    snapshots = {0: {}}
    for number, (name, step) in enumerate(steps):
        if step == "put":
            rv = put(store, name, number)
        elif store.get(POD, Key("a", name)):
            rv = drop(store, name)
        else:
            continue
        snapshots[rv] = {e.key.name: e.obj["value"] for e in store.entries(POD)}
    assert {rv: view(store, rv) for rv in snapshots} == snapshots


@given(operations, st.integers(1, 8))
@settings(max_examples=60)
def test_a_watch_from_any_kept_version_rebuilds_the_present(steps: list[tuple[str, str]], history: int) -> None:
    store = Store(history=history)
    for number, (name, step) in enumerate(steps):
        put(store, f"noise-{number}", resource="others")
        if step == "put":
            put(store, name, number)
        elif store.get(POD, Key("a", name)):
            drop(store, name)
    present = view(store, store.rv)
    for since in range(store.rv + 1):
        if since < store.history.horizon:
            with pytest.raises(ApiError, match="too old resource version") as refused:
                store.cursor(POD, since)
            assert refused.value.reason == "Expired"
            continue
        state = view(store, since)
        for change in store.cursor(POD, since).take():
            if change.type == "DELETED":
                del state[change.entry.key.name]
            else:
                state[change.entry.key.name] = change.entry.obj["value"]
        assert state == present


def test_versions_grow_by_one_over_all_types() -> None:
    store = Store()
    assert [put(store, "a"), put(store, "b", resource="jobs.batch"), put(store, "a"), drop(store, "a")] == [1, 2, 3, 4]


def test_a_deleted_event_carries_the_last_state_with_the_version_of_the_deletion() -> None:
    store = Store()
    put(store, "a", 7)
    drop(store, "a")
    change = store.cursor(POD, 1).take()[0]
    assert (change.type, change.entry.obj["value"], change.entry.obj["metadata"]["resourceVersion"]) == (
        "DELETED",
        7,
        "2",
    )


async def test_a_slow_watcher_never_holds_up_the_writer_and_expires() -> None:
    store = Store(history=5)
    slow = store.cursor(POD, 0)
    for number in range(50):
        put(store, "a", number)
    async with asyncio.timeout(1):
        await slow.wait()
    with pytest.raises(ApiError) as refused:
        slow.take()
    assert refused.value.code == 410


async def test_a_waiting_watcher_wakes_on_a_change_of_its_own_type_only() -> None:
    store = Store()
    cursor = store.cursor(POD, 0)
    waiting = asyncio.create_task(cursor.wait())
    await asyncio.sleep(0)
    put(store, "x", resource="others")
    await asyncio.sleep(0)
    assert not waiting.done()
    put(store, "a")
    async with asyncio.timeout(1):
        await waiting
    assert [change.entry.key.name for change in cursor.take()] == ["a"]


def test_compaction_makes_older_versions_expire_and_keeps_newer_ones() -> None:
    store = Store()
    for number in range(6):
        put(store, "a", number)
    store.history.compact(4)
    assert [c.entry.obj["value"] for c in store.cursor(POD, 4).take()] == [4, 5]
    with pytest.raises(ApiError):
        store.entries_at(POD, None, 3)


def test_a_version_of_the_future_is_refused() -> None:
    with pytest.raises(ApiError, match="Too large resource version"):
        Store().cursor(POD, 5)


def test_a_list_is_in_order_of_namespace_then_name() -> None:
    store = Store()
    for namespace, name in [("b", "x"), ("a", "z"), ("a", "y"), ("b", "w")]:
        put(store, name, namespace=namespace)
    assert [entry.key for entry in store.entries(POD)] == [("a", "y"), ("a", "z"), ("b", "w"), ("b", "x")]
    assert [entry.key.name for entry in store.entries(POD, "b")] == ["w", "x"]


def test_an_object_once_handed_out_stays_as_it_was() -> None:
    store = Store()
    put(store, "a", 1)
    first = store.entries(POD)[0]
    handed_out = first.obj
    put(store, "a", 2)
    assert handed_out["value"] == first.obj["value"] == 1
