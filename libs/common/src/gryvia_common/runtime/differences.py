"""Pure comparisons of JSON: what has to be sent so that what is becomes what should be, and whether anything has.

`covers` ignores what the server added: its defaults are not drift (keycloak/keycloak#38846), a changed value of ours is.
`project` cuts an object down to the shape of what we want, so that a value the server rewrites (a quantity, say) is recognised
the next time and not sent again for ever.
"""

from __future__ import annotations

from typing import Any

from gryvia_common.kube.objects import Json


def merge_difference(current: Json, desired: Json, *, removable: frozenset[str]) -> Json:
    """A JSON merge patch (RFC 7386) that makes `current` into `desired`; empty when nothing differs.

    At the top level only the keys in `removable` are taken away when `desired` lacks them: the others belong to other writers.
    """
    patch: Json = {}
    for key, value in desired.items():
        if key not in current:
            patch[key] = value
        elif current[key] != value:
            before = current[key]
            both = isinstance(before, dict) and isinstance(value, dict)
            patch[key] = merge_difference(before, value, removable=frozenset(before)) if both else value
    patch.update({key: None for key in current if key not in desired and key in removable})
    return patch


def project(live: Any, desired: Any) -> Any:
    """`live` cut down to the fields that `desired` has; lists of equal length element by element."""
    if isinstance(desired, dict) and isinstance(live, dict):
        return {key: project(live[key], value) for key, value in desired.items() if key in live}
    if isinstance(desired, list) and isinstance(live, list) and len(live) == len(desired):
        return [project(one, other) for one, other in zip(live, desired, strict=True)]
    return live


def covers(live: Any, desired: Any) -> bool:
    """Whether everything that `desired` says is so in `live`. An empty map or list that the server left out is so."""
    if isinstance(desired, dict):
        if not isinstance(live, dict):
            return False
        return all(
            covers(live[key], value) if key in live else value in ({}, [], None) for key, value in desired.items()
        )
    if isinstance(desired, list):
        if not isinstance(live, list) or len(live) != len(desired):
            return False
        return all(covers(one, other) for one, other in zip(live, desired, strict=True))
    return bool(live == desired)
