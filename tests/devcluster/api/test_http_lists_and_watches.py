"""LIST pages and WATCH streams: one consistent view, then every change once, and 410 when the history has gone on."""

from __future__ import annotations

from typing import Any

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
MERGE = "application/merge-patch+json"


def widget(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"size": 1, **spec},
    }


async def fill(client: Any, *names: str) -> str:
    for name in names:
        await client.ok("POST", WIDGETS, widget(name))
    version: str = (await client.ok("GET", WIDGETS))["metadata"]["resourceVersion"]
    return version


async def churn(client: Any, times: int) -> None:
    for number in range(times):
        body = {"metadata": {"name": "churn"}, "data": {"n": str(number)}}
        path = "/api/v1/namespaces/default/configmaps/churn?fieldManager=x"
        await client.ok(
            "PATCH",
            path,
            {"apiVersion": "v1", "kind": "ConfigMap", **body},
            Content_Type="application/apply-patch+yaml",
        )


def names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def test_pages_show_the_state_of_the_first_page(client: Any) -> None:
    await fill(client, "a", "b", "c", "d", "e")
    first = await client.ok("GET", f"{WIDGETS}?limit=2")
    assert (names(first), first["metadata"]["remainingItemCount"]) == (["a", "b"], 3)
    await client.ok("DELETE", f"{WIDGETS}/c")
    await client.ok("POST", WIDGETS, widget("bb"))
    await client.ok("PATCH", f"{WIDGETS}/d", {"spec": {"size": 9}}, Content_Type=MERGE)
    second = await client.ok("GET", f"{WIDGETS}?limit=2&continue={first['metadata']['continue']}")
    assert names(second) == ["c", "d"]
    assert second["items"][1]["spec"]["size"] == 1
    third = await client.ok("GET", f"{WIDGETS}?limit=2&continue={second['metadata']['continue']}")
    assert names(third) == ["e"]
    assert "continue" not in third["metadata"]
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {
        first["metadata"]["resourceVersion"]
    }


async def test_an_old_continue_token_expires_and_offers_an_inconsistent_rest(client: Any) -> None:
    await fill(client, "a", "b", "c")
    first = await client.ok("GET", f"{WIDGETS}?limit=1")
    await client.ok("DELETE", f"{WIDGETS}/b")
    await churn(client, 210)
    code, answer = await client("GET", f"{WIDGETS}?limit=1&continue={first['metadata']['continue']}")
    assert (code, answer["reason"]) == (410, "Expired")
    rest = await client.ok("GET", f"{WIDGETS}?limit=5&continue={answer['metadata']['continue']}")
    assert names(rest) == ["c"]
    assert (await client("GET", f"{WIDGETS}?continue=garbage"))[0] == 400


async def test_a_list_at_an_exact_version_is_the_state_then(client: Any) -> None:
    version = await fill(client, "a")
    await client.ok("DELETE", f"{WIDGETS}/a")
    then = await client.ok("GET", f"{WIDGETS}?resourceVersion={version}&resourceVersionMatch=Exact")
    assert (names(then), then["metadata"]["resourceVersion"]) == (["a"], version)
    assert (await client("GET", f"{WIDGETS}?resourceVersion=99999999"))[0] == 504


async def test_a_watch_continues_where_the_list_ended(client: Any) -> None:
    version = await fill(client, "a")
    await client.ok("PATCH", f"{WIDGETS}/a", {"spec": {"size": 2}}, Content_Type=MERGE)
    async with client.watch(f"{WIDGETS}?watch=true&resourceVersion={version}") as events:
        assert (await events.next())["type"] == "MODIFIED"
        await client.ok("POST", WIDGETS, widget("b"))
        await client.ok("DELETE", f"{WIDGETS}/a")
        added, deleted = await events.next(), await events.next()
    assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", "b")
    assert (deleted["type"], deleted["object"]["metadata"]["name"]) == ("DELETED", "a")
    assert int(deleted["object"]["metadata"]["resourceVersion"]) > int(added["object"]["metadata"]["resourceVersion"])


async def test_a_watch_without_a_version_begins_with_what_is_there(client: Any) -> None:
    await fill(client, "a", "b")
    async with client.watch(f"{WIDGETS}?watch=1") as events:
        first = [await events.next(), await events.next()]
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in first] == [("ADDED", "a"), ("ADDED", "b")]


async def test_initial_events_end_with_a_marked_bookmark(client: Any) -> None:
    await fill(client, "a")
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with client.watch(f"{WIDGETS}?{query}") as events:
        assert (await events.next())["type"] == "ADDED"
        mark = await events.next()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_ends_after_its_timeout_with_a_bookmark_of_the_newest_version(client: Any) -> None:
    version = await fill(client, "a")
    await churn(client, 3)
    newest = (await client.ok("GET", WIDGETS))["metadata"]["resourceVersion"]
    query = f"watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={version}"
    async with client.watch(f"{WIDGETS}?{query}") as events:
        mark = await events.next()
        assert (mark["type"], mark["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", newest)
        assert await events.next() is None


async def test_a_watch_from_before_the_history_is_410(client: Any) -> None:
    version = await fill(client, "a")
    await churn(client, 210)
    async with client.watch(f"{WIDGETS}?watch=1&resourceVersion={version}") as events:
        error = await events.next()
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert await events.next() is None


async def test_a_watch_that_the_history_overtakes_ends_with_an_error_event(client: Any) -> None:
    version = await fill(client, "a")
    registry = client.cluster.api
    rt = registry.resource("example.com", "widgets")
    async with client.watch(f"{WIDGETS}?watch=1&resourceVersion={version}") as events:
        for number in range(300):  # in one step of the loop, so the watcher cannot keep up
            registry.patch(rt, "default", "a", {"spec": {"size": number + 2}}, MERGE)
        error = await events.next()
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert await events.next() is None


async def test_under_a_selector_an_object_comes_and_goes(client: Any) -> None:
    await client.ok("POST", WIDGETS, widget("a", {"l": "x"}))
    version = (await client.ok("GET", WIDGETS))["metadata"]["resourceVersion"]
    async with client.watch(f"{WIDGETS}?watch=1&resourceVersion={version}&labelSelector=l%3Dx") as events:
        for label in ("y", "z", "x"):
            await client.ok("PATCH", f"{WIDGETS}/a", {"metadata": {"labels": {"l": label}}}, Content_Type=MERGE)
        await client.ok("DELETE", f"{WIDGETS}/a")
        seen = [(await events.next())["type"] for _ in range(3)]
    assert seen == ["DELETED", "ADDED", "DELETED"]


async def test_a_table_watch_has_its_columns_in_the_first_event_only(client: Any) -> None:
    await fill(client, "a", "b")
    client.session.headers["Accept"] = "application/json;as=Table;v=v1;g=meta.k8s.io"
    async with client.watch(f"{WIDGETS}?watch=1") as events:
        first, second = await events.next(), await events.next()
    assert first["object"]["columnDefinitions"]
    assert second["object"]["columnDefinitions"] is None
    assert [event["object"]["rows"][0]["cells"][0] for event in (first, second)] == ["a", "b"]


async def test_another_namespace_is_not_watched(client: Any) -> None:
    await client.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    version = await fill(client)
    async with client.watch(f"{WIDGETS}?watch=1&resourceVersion={version}") as events:
        await client.ok("POST", WIDGETS.replace("default", "other"), widget("there"))
        await client.ok("POST", WIDGETS, widget("here"))
        assert (await events.next())["object"]["metadata"]["name"] == "here"


async def test_many_watchers_get_the_same_bytes(client: Any) -> None:
    version = await fill(client)
    path = f"{WIDGETS}?watch=1&resourceVersion={version}"
    async with client.watch(path) as one, client.watch(path) as two:
        created = await client.ok("POST", WIDGETS, widget("a"))
        assert (await one.next())["object"] == (await two.next())["object"] == created
