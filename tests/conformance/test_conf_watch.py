"""Watches: what is seen, from when, and what is said when the past is forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

from tools.realcluster.http import MERGE

from .widgets import WIDGETS_PATH, widget


def brief(event: Any) -> Any:
    obj = event["object"]
    return [event["type"], obj["metadata"].get("name"), (obj.get("spec") or {}).get("size")]


async def test_a_watch_tells_every_change_in_order(api: Any, namespace: str) -> None:
    path = WIDGETS_PATH.replace("{ns}", namespace)
    version = (await api.ok("GET", path))["metadata"]["resourceVersion"]
    async with api.watch(f"{path}?watch=1&resourceVersion={version}") as events:
        await api.ok("POST", path, widget())
        await api.ok("PATCH", f"{path}/a", {"spec": {"size": 2}}, content_type=MERGE)
        await api.ok("PATCH", f"{path}/a", {"spec": {"size": 2}}, content_type=MERGE)
        await api.ok("DELETE", f"{path}/a")
        await api.ok("POST", path, widget("b"))
        seen = [await events.next() for _ in range(4)]
    assert [brief(event) for event in seen] == [
        ["ADDED", "a", 1],
        ["MODIFIED", "a", 2],
        ["DELETED", "a", 2],
        ["ADDED", "b", 1],
    ]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
    assert versions == sorted(set(versions)), "the deletion has a version of its own"
    async with api.watch(f"{path}?watch=1&resourceVersion={versions[1]}") as events:
        assert [brief(event)[0] for event in [await events.next() for _ in range(2)]] == ["DELETED", "ADDED"]


async def test_without_a_version_a_watch_begins_with_what_is_there(api: Any, namespace: str) -> None:
    path = WIDGETS_PATH.replace("{ns}", namespace)
    await api.ok("POST", path, widget("a"))
    await api.ok("POST", path, widget("b"))
    for query in ("", "&resourceVersion=0"):
        async with api.watch(f"{path}?watch=1{query}") as events:
            first = [await events.next() for _ in range(2)]
            assert sorted(brief(event)[1] for event in first) == ["a", "b"]
            await api.ok("PATCH", f"{path}/a", {"metadata": {"labels": {"q": f"x{query[-1:]}"}}}, content_type=MERGE)
            assert brief(await events.next())[:2] == ["MODIFIED", "a"]


async def test_an_initial_list_ends_with_an_annotated_bookmark(api: Any, namespace: str) -> None:
    path = WIDGETS_PATH.replace("{ns}", namespace)
    await api.ok("POST", path, widget("a"))
    query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    async with api.watch(f"{path}?{query}") as events:
        assert brief(await events.next()) == ["ADDED", "a", 1]
        bookmark = await events.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["object"]["kind"] == "Widget"
    listed = int((await api.ok("GET", path))["metadata"]["resourceVersion"])
    assert 0 < int(bookmark["object"]["metadata"]["resourceVersion"]) <= listed


async def test_a_watch_with_bookmarks_ends_with_one_in_time(api: Any, namespace: str) -> None:
    """A bookmark comes shortly before the server ends the watch, with a version a reader can go on from."""
    path = WIDGETS_PATH.replace("{ns}", namespace)
    version = (await api.ok("GET", path))["metadata"]["resourceVersion"]
    async with api.watch(
        f"{path}?watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={version}"
    ) as events:
        await api.ok("POST", path, widget())
        seen = []
        while (event := await events.next(seconds=8)) is not None:
            seen.append(event)
    assert [event["type"] for event in seen if event["type"] != "BOOKMARK"] == ["ADDED"]
    [*_, last] = [event for event in seen if event["type"] == "BOOKMARK"]
    async with api.watch(f"{path}?watch=1&resourceVersion={last['object']['metadata']['resourceVersion']}") as events:
        await api.ok("DELETE", f"{path}/a")
        assert brief(await events.next())[:2] == ["DELETED", "a"]


async def test_a_selector_turns_changes_into_coming_and_going(api: Any, namespace: str) -> None:
    path = WIDGETS_PATH.replace("{ns}", namespace)
    version = (await api.ok("GET", path))["metadata"]["resourceVersion"]
    for selector in ("labelSelector=on", "fieldSelector=spec.color%3Dblue"):
        async with api.watch(f"{path}?watch=1&resourceVersion={version}&{selector}") as events:
            await api.ok("POST", path, widget())
            on = {"metadata": {"labels": {"on": "1"}}, "spec": {"color": "blue"}}
            off = {"metadata": {"labels": {"on": None}}, "spec": {"color": "red"}}
            await api.ok("PATCH", f"{path}/a", on, content_type=MERGE)
            await api.ok("PATCH", f"{path}/a", {"spec": {"size": 3}}, content_type=MERGE)
            await api.ok("PATCH", f"{path}/a", off, content_type=MERGE)
            await api.ok("PATCH", f"{path}/a", on, content_type=MERGE)
            await api.ok("DELETE", f"{path}/a")
            seen = [await events.next() for _ in range(5)]
        assert [brief(event) for event in seen] == [
            ["ADDED", "a", 1],
            ["MODIFIED", "a", 3],
            ["DELETED", "a", 3],
            ["ADDED", "a", 3],
            ["DELETED", "a", 3],
        ]
        version = seen[-1]["object"]["metadata"]["resourceVersion"]


async def test_a_forgotten_version_is_a_410_within_the_stream(talk: Any, api: Any, namespace: str, target: Any) -> None:
    path = WIDGETS_PATH.replace("{ns}", namespace)
    target.forget()
    async with api.watch(f"{path}?watch=1&resourceVersion=1") as events:
        event = await events.next()
        assert await events.next() is None
    assert event["type"] == "ERROR"
    told = {key: event["object"].get(key) for key in ("kind", "apiVersion", "status", "reason", "code")}
    assert told == {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
    assert event["object"]["message"].startswith("too old resource version: 1 (")


async def test_refused_watches(talk: Any) -> None:
    for query in (
        "watch=1&resourceVersion=x",
        "watch=1&sendInitialEvents=true",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
        "watch=1&resourceVersionMatch=NotOlderThan",
        "watch=1&labelSelector=%3D",
        "watch=1&fieldSelector=spec.size%3D1",
        "watch=1&limit=1&continue=x",
        "watch=maybe&limit=1",
    ):
        await talk("GET", f"{WIDGETS_PATH}?{query}&timeoutSeconds=1")


async def test_a_watch_of_one_object(api: Any, namespace: str) -> None:
    path = WIDGETS_PATH.replace("{ns}", namespace)
    created = await api.ok("POST", path, widget())
    version = created["metadata"]["resourceVersion"]
    query = f"watch=1&fieldSelector=metadata.name%3Da&resourceVersion={version}"
    async with api.watch(f"{path}?{query}") as events:
        await api.ok("POST", path, widget("b"))
        await api.ok("DELETE", f"{path}/a")
        assert brief(await events.next())[:2] == ["DELETED", "a"]


async def test_a_slow_reader_misses_nothing(api: Any, namespace: str) -> None:
    path = WIDGETS_PATH.replace("{ns}", namespace)
    created = await api.ok("POST", path, widget())
    version = created["metadata"]["resourceVersion"]
    async with api.watch(f"{path}?watch=1&resourceVersion={version}") as events:
        for size in range(2, 82):
            await api.ok("PATCH", f"{path}/a", {"spec": {"size": size}}, content_type=MERGE)
        async with asyncio.timeout(10):
            assert [brief(event)[2] for event in [await events.next() for _ in range(80)]] == list(range(2, 82))
