"""Names for pod templates: the same template always gets the same hash, so a revision can be recognised.

The real controllers hash a Go dump of the template; nobody can depend on the value, only on its being stable and short.
The alphabet has no vowels, as theirs, so that no word can arise.
"""

from __future__ import annotations

import hashlib
import json

from gryvia_devcluster.types import Json

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Json, collisions: int = 0, length: int = 10) -> str:
    text = json.dumps([template, collisions], sort_keys=True, separators=(",", ":"))
    digest = hashlib.blake2b(text.encode(), digest_size=length).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)


def scaled_amount(value: int | str | None, total: int, *, up: bool) -> int:
    """An absolute number or a percentage of `total`, rounded up for surge and down for unavailability."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if value.endswith("%"):
        parts = int(value[:-1]) * total
        return -(-parts // 100) if up else parts // 100
    return int(value)
