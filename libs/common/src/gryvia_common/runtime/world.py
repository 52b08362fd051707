"""What a decide function may know besides its object: a read-only view of the bus cache, and what earlier passes learnt.

Invariant: `world` is complete for the children of the object (the runtime starts no pass before the snapshot is) and includes
the service's own last writes. Nothing in it may be changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from gryvia_common.kinds.model import Spec, Status
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import Resource

S = TypeVar("S", bound=Spec)
T = TypeVar("T", bound=Status)


@dataclass(frozen=True, slots=True)
class Object(Generic[S, T]):
    """The object a pass is about: `raw` as on the bus, `spec` and `status` parsed (an unreadable status is an empty one)."""

    raw: Json
    namespace: str
    name: str
    uid: str
    generation: int
    deleting: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    created_at: datetime
    spec: S
    status: T


@dataclass(frozen=True, slots=True)
class Observation:
    """The answer of an action: `value` is what the runner returned, or `error` the message it failed with; `at` when."""

    at: datetime
    value: object = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A child the API server would not take, or that belongs to somebody else (`reason` NameCollision). Remembered until the
    object's generation or the manifest changes, so that it is not asked again and again; decide says so in the status."""

    resource: Resource
    name: str
    reason: str
    message: str


class World(Protocol):
    """See the module's docstring."""

    def children(self, resource: Resource) -> Sequence[Json]:
        """Everything of this type that belongs to the object, by owner annotation or owner reference (uid), at any depth, by name."""
        ...

    def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """Any object of a type that the controller declared in `refs`."""
        ...

    def observation(self, key: str) -> Observation | None: ...

    def refusal(self, resource: Resource, name: str) -> Refusal | None: ...


@dataclass(frozen=True, slots=True)
class FixedWorld:
    """A World from plain values: what the runtime takes from the cache for one pass, and what a test states."""

    owned: Mapping[Resource, Sequence[Json]] = field(default_factory=dict)
    others: Mapping[tuple[Resource, str, str], Json] = field(default_factory=dict)
    observations: Mapping[str, Observation] = field(default_factory=dict)
    refusals: Mapping[tuple[Resource, str], Refusal] = field(default_factory=dict)

    def children(self, resource: Resource) -> Sequence[Json]:
        return self.owned.get(resource, ())

    def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        return self.others.get((resource, namespace, name))

    def observation(self, key: str) -> Observation | None:
        return self.observations.get(key)

    def refusal(self, resource: Resource, name: str) -> Refusal | None:
        return self.refusals.get((resource, name))
