"""URLs of resources: /api/v1/… and /apis/<group>/<version>/… taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class Target:
    """What a resource URL points at; `name` "" is the collection, `namespace` None is all or cluster scope."""

    group: str
    version: str
    plural: str
    namespace: str | None
    name: str
    subresource: str


def parse(path: str) -> Target | None:
    """None when the path is not of a resource (discovery, health, …)."""
    steps = [unquote(step) for step in path.strip("/").split("/")]
    if steps[0] == "api" and len(steps) > 2:
        group, version, rest = "", steps[1], steps[2:]
    elif steps[0] == "apis" and len(steps) > 3:
        group, version, rest = steps[1], steps[2], steps[3:]
    else:
        return None
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    plural, name = rest[0], rest[1] if len(rest) > 1 else ""
    return Target(group, version, plural, namespace, name, "/".join(rest[2:]))
