"""How a task is ended: cancelled, and waited for, without swallowing a cancellation of one's own.

`task.cancel(); suppress(CancelledError): await task` looks right and is not: when the one who waits is cancelled meanwhile, that
cancellation is suppressed too, and a service that was told to stop goes on.
"""

from __future__ import annotations

import asyncio


async def end_task(task: asyncio.Task[object]) -> None:
    """What the task raised is its owner's business and was it before; here it only ends."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()
