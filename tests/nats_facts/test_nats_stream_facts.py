"""What following and leasing rely on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg


async def api(client: Client, verb: str, request: object = None) -> dict[str, Any]:
    answer = await client.request(f"$JS.API.{verb}", json.dumps(request).encode() if request else b"", timeout=5)
    reply: dict[str, Any] = json.loads(answer.data)
    return reply


async def pulled(client: Client, name: str, count: int, **config: Any) -> list[Msg]:
    """What one pull of a new consumer brings, statuses included."""
    await api(
        client,
        f"CONSUMER.CREATE.S.{name}",
        {"stream_name": "S", "config": {"name": name, "ack_policy": "none", "mem_storage": True, **config}},
    )
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    request = {"batch": 100, "expires": 300_000_000}
    await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.S.{name}", json.dumps(request).encode(), reply=inbox)
    messages = [await subscription.next_msg(timeout=5) for _ in range(count)]
    await subscription.unsubscribe()
    return messages


async def test_with_one_message_a_subject_all_means_last_per_subject_in_stream_order(client: Client) -> None:
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s.*"], max_msgs_per_subject=1)
    for subject in ("s.a", "s.b", "s.a", "s.c"):
        await js.publish(subject, b"")
    messages = await pulled(client, "c", 4, deliver_policy="all", filter_subjects=["s.a", "s.b", "s.c"])
    assert [message.subject for message in messages[:3]] == ["s.b", "s.a", "s.c"]
    # The acknowledgement subject carries stream sequence, consumer sequence, time and what is pending; then the pull expires.
    assert [message.reply.split(".")[5:7] for message in messages[:3]] == [["2", "1"], ["3", "2"], ["4", "3"]]
    assert [message.reply.split(".")[8] for message in messages[:3]] == ["2", "1", "0"]
    assert messages[3].headers is not None
    assert messages[3].headers["Status"] == "408"


async def test_taking_up_after_a_sequence_gives_what_was_replaced_meanwhile(client: Client) -> None:
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s.*"], max_msgs_per_subject=1)
    for subject in ("s.a", "s.b"):
        await js.publish(subject, b"seen")
    await js.publish("s.a", b"new")
    messages = await pulled(client, "c", 1, deliver_policy="by_start_sequence", opt_start_seq=3)
    assert (messages[0].subject, messages[0].data) == ("s.a", b"new")


async def test_an_open_pull_is_told_when_its_consumer_is_deleted(client: Client) -> None:
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s"])
    opened = asyncio.create_task(pulled(client, "c", 1))
    async with asyncio.timeout(5):
        while not (await api(client, "CONSUMER.INFO.S.c")).get("num_waiting"):
            await asyncio.sleep(0)
    await js.delete_consumer("S", "c")
    (status,) = await opened
    assert status.headers is not None
    assert (status.headers["Status"], status.headers["Description"]) == ("409", "Consumer Deleted")


async def test_a_pull_that_runs_out_of_bytes_says_so(client: Client) -> None:
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s"])
    await js.publish("s", b"x" * 1000)
    await api(client, "CONSUMER.CREATE.S.c", {"stream_name": "S", "config": {"name": "c", "ack_policy": "none"}})
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    request = {"batch": 100, "expires": 300_000_000, "max_bytes": 500}
    await client.publish("$JS.API.CONSUMER.MSG.NEXT.S.c", json.dumps(request).encode(), reply=inbox)
    status = await subscription.next_msg(timeout=5)
    assert status.headers is not None
    assert (status.headers["Status"], status.headers["Description"]) == ("409", "Message Size Exceeds MaxBytes")


async def test_a_stream_made_anew_has_another_creation_time(client: Client) -> None:
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s"], storage="memory")
    before = (await api(client, "STREAM.INFO.S"))["created"]
    await js.delete_stream("S")
    await js.add_stream(name="S", subjects=["s"], storage="memory")
    assert (await api(client, "STREAM.INFO.S"))["created"] != before


async def test_making_a_stream_that_is_there_is_no_error_when_it_is_the_same(client: Client) -> None:
    config = {"name": "S", "subjects": ["s"], "max_age": 12_000_000_000}
    await api(client, "STREAM.CREATE.S", config)
    assert "error" not in await api(client, "STREAM.CREATE.S", config)
    different = await api(client, "STREAM.CREATE.S", {**config, "max_age": 1_000_000_000})
    assert different["error"]["err_code"] == 10058


async def test_a_key_of_a_bucket_with_a_ttl_lives_as_long_as_it_is_renewed(client: Client) -> None:
    """And the list of subjects tells who lives, in one request."""
    js = client.jetstream()
    await js.add_stream(name="KV", subjects=["kv.>"], max_msgs_per_subject=1, max_age=1, duplicate_window=1)

    async def alive() -> set[str]:
        return set((await api(client, "STREAM.INFO.KV", {"subjects_filter": "kv.*"}))["state"].get("subjects") or {})

    await js.publish("kv.dies", b"")
    await js.publish("kv.lives", b"")
    assert await alive() == {"kv.dies", "kv.lives"}
    async with asyncio.timeout(10):
        while "kv.dies" in await alive():
            await js.publish("kv.lives", b"")
            await asyncio.sleep(0.05)
    assert await alive() == {"kv.lives"}
    await api(client, "STREAM.PURGE.KV", {"filter": "kv.lives"})
    assert await alive() == set()


async def test_a_forgotten_consumer_is_removed_by_the_server(client: Client, nats_url: str) -> None:
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s"])
    other = await nats.connect(nats_url)
    await pulled(other, "c", 1, inactive_threshold=200_000_000)
    await other.close()
    async with asyncio.timeout(10):
        while (await api(client, "CONSUMER.NAMES.S"))["total"]:
            await asyncio.sleep(0.05)
