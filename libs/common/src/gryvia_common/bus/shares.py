"""Who should hold which partition: pure functions, the same answer on every replica that sees the same claims.

Even and still: with n live replicas everyone gets 16/n, rounded up or down, and no partition moves that need not.
Plain rendezvous hashing moves little but deals 16 partitions unevenly (11 to 5 is common between two), so its scores
only decide what the counts leave open: which partition a replica gives up, and who takes a free one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from gryvia_common.bus.subjects import PARTITIONS

Claims = Mapping[int, str]
"""Partition to the holder's id. A claim counts only while its holder lives; a partition without one is free."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one replica does next: stop working on `release`, and write `claims` (which still name it for those)."""

    claims: dict[int, str]
    release: frozenset[int]


def share(claims: Claims, live: frozenset[str]) -> dict[int, str]:
    """Every partition's rightful holder, empty when nobody lives. Idempotent: what it answers it confirms."""
    if not live:
        return {}
    valid = {part: holder for part, holder in claims.items() if holder in live and 0 <= part < PARTITIONS}
    quotas = _quotas(valid, live)
    result: dict[int, str] = {}
    for holder in live:
        mine = sorted((part for part in valid if valid[part] == holder), key=lambda part: -score(holder, part))
        result.update(dict.fromkeys(mine[: quotas[holder]], holder))
    room = Counter(quotas)
    room.subtract(result.values())
    for part in range(PARTITIONS):
        if part not in result:
            holder = max((one for one in sorted(live) if room[one] > 0), key=lambda one: score(one, part))
            result[part] = holder
            room[holder] -= 1
    return result


def step(claims: Claims, live: frozenset[str], me: str, released: frozenset[int]) -> Step:
    """`released`: partitions that this replica has stopped working on since it decided to give them up. It takes what
    is free and should be its own, hands on what it has released, and touches nobody else's living claim."""
    target = share(claims, live)
    wanted = dict(claims)
    release: set[int] = set()
    for part, rightful in target.items():
        holder = claims.get(part)
        if holder == me and rightful != me:
            if part in released:
                wanted[part] = rightful
            else:
                release.add(part)
        elif rightful == me and holder not in live:
            wanted[part] = me
    return Step(wanted, frozenset(release))


def score(holder: str, part: int) -> int:
    """The rendezvous weight of a replica for a partition."""
    return int.from_bytes(blake2b(f"{holder}/{part}".encode(), digest_size=8).digest())


def _quotas(valid: Claims, live: frozenset[str]) -> dict[str, int]:
    """The odd ones go to who holds most already, so that the fewest partitions move."""
    least, odd = divmod(PARTITIONS, len(live))
    counts = Counter(valid.values())
    order = sorted(live, key=lambda holder: (-counts[holder], -score(holder, PARTITIONS)))
    return {holder: least + (place < odd) for place, holder in enumerate(order)}
