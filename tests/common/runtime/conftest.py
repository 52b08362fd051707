"""Everything about the runtime runs on virtual time: a loop whose clock jumps to the next timer when nothing else is to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import looptime
import pytest


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": lambda: looptime.new_event_loop(start=0)}
