"""Long campaigns that mostly wait, side by side in one test: each runs to its end, whatever becomes of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


async def at_once(*works: Awaitable[None]) -> None:
    """Raises what failed, together."""
    ended = await asyncio.gather(*works, return_exceptions=True)
    if wrong := [error for error in ended if isinstance(error, BaseException)]:
        raise BaseExceptionGroup("campaigns", wrong)
