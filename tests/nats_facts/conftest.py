"""A plain nats-py client on the session's server: the facts are NATS's, not ours."""

from __future__ import annotations

from collections.abc import AsyncIterator

import nats
import pytest
from nats.aio.client import Client


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    connected = await nats.connect(nats_url)
    yield connected
    await connected.close()
