"""What publishing relies on. If an upgrade of NATS changes one of these, it must be noticed here and not in production."""

from __future__ import annotations

import asyncio

import nats
import pytest
from nats.aio.client import Client
from nats.errors import OutboundBufferLimitError
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from gryvia_cli.nats_server import NatsServer


def last(sequence: int) -> dict[str, str]:
    return {"Nats-Expected-Last-Subject-Sequence": str(sequence)}


async def test_dedupe_is_of_the_stream_and_not_of_the_subject(client: Client) -> None:
    """So an id must contain what tells subjects apart."""
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s.*"], duplicate_window=60)
    first = await js.publish("s.a", b"", headers={"Nats-Msg-Id": "1"})
    second = await js.publish("s.b", b"", headers={"Nats-Msg-Id": "1"})
    assert second.duplicate
    assert second.seq == first.seq


async def test_the_expected_sequence_is_checked_before_the_dedupe(client: Client) -> None:
    """So a retry after a lost answer gets 10071, not "duplicate", and the subject must be read back."""
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s"], duplicate_window=60)
    await js.publish("s", b"", headers={"Nats-Msg-Id": "1", **last(0)})
    with pytest.raises(APIError) as caught:
        await js.publish("s", b"", headers={"Nats-Msg-Id": "1", **last(0)})
    assert caught.value.err_code == 10071


async def test_expected_sequence_zero_means_create_only_and_a_replaced_message_still_counts(client: Client) -> None:
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s.*"], max_msgs_per_subject=1)
    first = await js.publish("s.a", b"", headers=last(0))
    await js.publish("s.b", b"", headers=last(0))
    second = await js.publish("s.a", b"", headers=last(first.seq))
    assert second.seq == 3
    assert (await js.stream_info("S")).state.messages == 2


async def test_a_tombstone_with_a_time_to_live_goes_away_and_the_subject_is_free_again(client: Client) -> None:
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s.*"], max_msgs_per_subject=1, allow_msg_ttl=True)
    await js.publish("s.a", b"alive")
    await js.publish("s.a", b"", headers={"Nats-TTL": "1s"})
    async with asyncio.timeout(10):
        while (await js.stream_info("S")).state.messages:
            await asyncio.sleep(0.05)
    with pytest.raises(NotFoundError):
        await js.get_last_msg("S", "s.a")
    assert (await js.publish("s.a", b"again", headers=last(0))).seq == 3


async def test_without_a_stream_the_answer_comes_at_once(client: Client) -> None:
    async with asyncio.timeout(2):
        with pytest.raises(NoStreamResponseError):
            await client.jetstream().publish("nobody.listens", b"", timeout=30)


async def test_what_was_acknowledged_survives_a_kill_and_so_does_the_dedupe(own_nats: NatsServer) -> None:
    back = asyncio.Event()

    async def reconnected() -> None:
        back.set()

    async def quiet(_: Exception) -> None: ...

    client = await nats.connect(own_nats.url, reconnect_time_wait=0.05, reconnected_cb=reconnected, error_cb=quiet)
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s"], duplicate_window=60)
    await js.publish("s", b"kept", headers={"Nats-Msg-Id": "1"})
    await own_nats.kill()
    await own_nats.start(supervise=False)
    async with asyncio.timeout(5):
        await back.wait()
    assert (await js.get_last_msg("S", "s")).data == b"kept"
    assert (await js.publish("s", b"", headers={"Nats-Msg-Id": "1"})).duplicate
    await client.close()


async def test_without_a_pending_buffer_a_publish_while_disconnected_is_refused(own_nats: NatsServer) -> None:
    """With one it is sent after the reconnection, long after its sender gave up."""
    lost = asyncio.Event()

    async def disconnected() -> None:
        lost.set()

    async def quiet(_: Exception) -> None: ...

    client = await nats.connect(own_nats.url, pending_size=0, disconnected_cb=disconnected, error_cb=quiet)
    await own_nats.kill()
    await lost.wait()
    with pytest.raises(OutboundBufferLimitError):
        await client.publish("s", b"")
    await client.close()
