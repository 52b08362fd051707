"""Prints every finished trial. Copy it, change the subject and what is done with an event."""

import asyncio
import json
import os

import nats

URL = os.environ.get("GRYVIA_NATS_URL", "nats://127.0.0.1:4222")
SUBJECT = os.environ.get("SUBJECT", "gryvia.event.trial.completed.>")
NAME = os.environ.get("CONSUMER", "my-integration")  # the server remembers what this consumer has handled


async def main() -> None:
    # A reader may hear what is said to readers only, hence the prefix.
    client = await nats.connect(URL, max_reconnect_attempts=-1, inbox_prefix="_INBOX_reader")
    events = await client.jetstream().pull_subscribe(SUBJECT, durable=NAME, stream="EVENTS")
    while True:
        try:
            messages = await events.fetch(10, timeout=5)
        except nats.errors.TimeoutError:
            continue  # nothing happened
        for message in messages:
            data = json.loads(message.data)
            headers = message.headers or {}
            print(headers["ce-id"], data["name"], data.get("metricValue"), flush=True)
            await message.ack()  # not before it is done: what is not acknowledged comes again


asyncio.run(main())
