"""The items of a step with withItems: a list, or a text that becomes a JSON list when its placeholders are replaced.

How many there are is fixed when the step begins. An item's value is found anew for each attempt, from the same outputs.
"""

from __future__ import annotations

import json
from typing import Any

from gryvia_pipelines.validation import ITEMS_LIMIT
from gryvia_workflow.templating import Scope, Unresolved, render


class BadItems(Exception):
    """withItems gives no list: the text says why."""


def items_of(with_items: Any, scope: Scope) -> list[Any]:
    """Raises BadItems."""
    try:
        found = render(with_items, scope)
    except Unresolved as error:
        raise BadItems(f"withItems: {error}") from error
    if isinstance(found, str):
        text = found
        try:
            found = json.loads(text)
        except ValueError as error:
            raise BadItems(f'withItems: "{text[:80]}" is no JSON list: {error}') from error
        if not isinstance(found, list):
            raise BadItems(f'withItems: "{text[:80]}" is JSON, but no list')
    if not isinstance(found, list):
        raise BadItems("withItems: there is no list any more")
    if len(found) > ITEMS_LIMIT:
        raise BadItems(
            f"withItems: {len(found)} items are too many, a run may have {ITEMS_LIMIT}; give each step more to do"
        )
    return list(found)
