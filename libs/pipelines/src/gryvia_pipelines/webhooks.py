"""What is wrong with the block of a webhook step before its first call: the form of its URL, its headers and its success condition.

What holds a placeholder is judged when it has its value. Whether webhooks are allowed, and to which hosts, is the operator's to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gryvia_common.errors import Terminal
from gryvia_common.kinds.workflow import Webhook
from gryvia_common.outbound.target import header_problems, parse_target

_SUCCESS = re.compile(r"\s*status\s*==\s*([1-5][0-9]{2})\s*", re.ASCII)
_PLACEHOLDER = "{{"


def problems(webhook: Webhook) -> Iterator[str]:
    if _PLACEHOLDER not in webhook.url:
        try:
            parse_target(webhook.url)
        except Terminal as error:
            yield f"webhook.url: {error}"
    for problem in header_problems(webhook.headers or {}):
        yield f"webhook.headers: {problem}"
    condition = webhook.success_condition
    if condition is not None and _PLACEHOLDER not in condition and success_status(condition) is None:
        yield f'webhook.successCondition: "{condition[:80]}" is not understood; use status == <code>, or leave it out for any 2xx'


def success_status(condition: str) -> int | None:
    """The status that a success condition names, None when it is no such condition."""
    match = _SUCCESS.fullmatch(condition)
    return int(match[1]) if match else None
